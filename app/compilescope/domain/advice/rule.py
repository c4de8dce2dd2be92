"""What a piece of advice is, and what a rule sees when it decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.domain import words
from compilescope.domain.events import Place
from compilescope.domain.measures import Measures
from compilescope.domain.playoff import PlayOff
from compilescope.domain.run import ProcessStory, Run
from compilescope.domain.verdict import Verdict, judge

_DOCS = "https://docs.pytorch.org/docs/stable/"
_COMPILER = f"{_DOCS}user_guide/torch_compiler/"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a remedy is written down."""

    title: str
    url: str


COMPILE = Source(title="torch.compile", url=f"{_DOCS}generated/torch.compile.html")
GRAPH_BREAKS = Source(
    title="Working with graph breaks", url=f"{_COMPILER}compile/programming_model.graph_breaks_index.html"
)
SKIPPED = Source(title="Skipped functions", url=f"{_COMPILER}compile/programming_model.skipped_functions.html")
RECOMPILES = Source(title="Dealing with recompilations", url=f"{_COMPILER}compile/programming_model.recompilation.html")
DYNAMIC_SHAPES = Source(title="Dynamic shapes", url=f"{_COMPILER}torch.compiler_dynamic_shapes.html")
CUDAGRAPHS = Source(title="CUDAGraph Trees", url=f"{_COMPILER}torch.compiler_cudagraph_trees.html")
TROUBLESHOOTING = Source(title="torch.compile troubleshooting", url=f"{_COMPILER}torch.compiler_troubleshooting.html")
FAQ = Source(title="torch.compile frequently asked questions", url=f"{_COMPILER}torch.compiler_faq.html")
TF32 = Source(title="TensorFloat-32 on Ampere and later", url=f"{_DOCS}notes/cuda.html#tf32-on-ampere")
OPTIMIZER = Source(
    title="(beta) Compiling the optimizer with torch.compile",
    url="https://docs.pytorch.org/tutorials/recipes/compiling_optimizer.html",
)
CONFIG = Source(title="torch.compiler.config", url=f"{_COMPILER}torch.compiler.config.html")
CACHING = Source(
    title="Compile time caching",
    url="https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_configuration_tutorial.html",
)
KALIBERA = Source(
    title="Kalibera, Jones: Rigorous Benchmarking in Reasonable Time",
    url="https://doi.org/10.1145/2491894.2464160",
)


def graph_break_source(break_id: str | None) -> Source:
    """The page of one kind of graph break; the general one where it has none."""
    if not break_id:
        return GRAPH_BREAKS
    name = break_id.lower()
    return Source(
        title=f"Graph break {break_id}", url=f"https://meta-pytorch.org/compile-graph-break-site/gb/{name}.html"
    )


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One thing to know or try. `evidence` is what was seen in this run, `remedy` what to do about it.

    `severity`: "problem" (the result is not what was asked for), "cost" (time is lost) or "note".
    """

    code: str
    title: str
    evidence: str
    remedy: str
    source: Source
    severity: str = "cost"
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run that is over or far enough, its figures, and the other runs of its comparison with their play-offs."""

    run: Run
    story: ProcessStory
    measures: Measures
    others: Sequence[Run]
    noise_floor: float
    play_offs: Sequence[PlayOff] = ()

    @property
    def verdict(self) -> Verdict | None:
        return judge(self.run, self.noise_floor)

    @property
    def device(self) -> str | None:
        return self.run.device

    @property
    def on_cuda(self) -> bool:
        return (self.device or "").startswith("cuda")

    @property
    def capability(self) -> tuple[int, int] | None:
        """The GPU's compute capability, as (8, 0)."""
        texts = (p.environment.device_capability for p in self.run.processes if p.environment)
        for text in texts:
            major, _, minor = str(text or "").partition(".")
            if major.isdigit():
                return int(major), int(minor) if minor.isdigit() else 0
        return None


def one_line(text: str | None, otherwise: str = "no reason given") -> str:
    """A text from the compiler, on one line."""
    return " ".join((text or "").split()) or otherwise


def places_of(rows: Sequence[object]) -> tuple[Place, ...]:
    """The distinct places of events, in order."""
    found: dict[Place, None] = {}
    for row in rows:
        file = getattr(row, "file", None)
        if file:
            found[Place(file=file, line=getattr(row, "line", None), function=getattr(row, "function", None))] = None
    return tuple(found)


def place_text(places: Sequence[Place], limit: int = 3) -> str:
    """Places in a sentence: "at model.py:12 and model.py:40", or nothing."""
    if not places:
        return ""
    names = [words.place(place.file, place.line) for place in places[:limit]]
    more = f" and {len(places) - limit} more" if len(places) > limit else ""
    return " at " + ", ".join(names) + more
