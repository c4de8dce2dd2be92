"""One compile of one frame, from its first record to its last: breaks and recompiles are told when they are certain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compilescope.domain import events as e
from compilescope.domain.trace import code
from compilescope.domain.trace.breaks import Break
from compilescope.domain.trace.loops import is_in_loop
from compilescope.domain.trace.recompiles import Reason, plain_source
from compilescope.domain.trace.resumes import last_place
from compilescope.domain.trace.variants import Variants

LIMIT_REASON = "recompile limit exceeded"
_LIMIT_ERRORS = ("FailOnRecompileLimitHit", "RecompileLimitExceeded", "CacheLimitExceeded")
# what ends a compile where Dynamo leaves the graph or the frame, as it may at any time
_LEFT = (*_LIMIT_ERRORS, "Unsupported", "UserError", "SkipFrame", "SkipCodeRecursiveException")
SUPPRESSED = "hidden by torch._dynamo.config.suppress_errors"


@dataclass(frozen=True, kw_only=True)
class Entrance:
    """What a compiled library module's frame stands for: torch wraps it, and the wrapper has no argument names."""

    file: str | None = None
    line: int | None = None
    function: str = "forward"
    arguments: tuple[str, ...] = ()

    @property
    def place(self) -> e.Place | None:
        return e.Place(file=self.file, line=self.line, function=self.function) if self.file else None


def is_wrapper(place: e.Place) -> bool:
    """Whether a compiled frame is the one that torch puts around a library module."""
    return place.function == "inner" and place.file.replace("\\", "/").endswith("torch/_dynamo/external_utils.py")


@dataclass
class Frame:
    """State of one compile id."""

    place: e.Place | None = None
    # the frames that called it, where they were told
    above: frozenset[e.Place] | None = None
    # where its function begins, of which it may be a part that follows a break
    first_line: int | None = None
    is_wrapper: bool = False
    captured: bool = False
    has_ended: bool = False
    breaks: dict[tuple[object, ...], e.GraphBreak] = field(default_factory=dict)
    told: set[tuple[object, ...]] = field(default_factory=set)
    # of the breaks, those whose line is not known so far, with the places that the compiler came past
    unplaced: dict[tuple[object, ...], tuple[e.Place, ...]] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    nodes: dict[str, e.Place] = field(default_factory=dict)
    backward_nodes: dict[str, e.Place] = field(default_factory=dict)
    kernels: list[code.KernelUse] = field(default_factory=list)

    def add_break(self, found: Break, at: float = 0.0, origin: str = "") -> None:
        """Keep a break until it is known whether the frame goes on; a retry reports the same one again."""
        root, *rest = found.causes
        place = found.place
        key = (root.id or root.kind, found.library if found.is_omitted else place)
        if key in self.told:
            return
        kept = self.breaks.get(key)
        if found.is_omitted:
            self.unplaced[key] = found.lines
        elif found.library:
            # told once more, and this time with its line
            omitted = (root.id or root.kind, found.library)
            kept = self.breaks.pop(omitted, None) or kept
            self.unplaced.pop(omitted, None)
        self.breaks[key] = e.GraphBreak(
            # one that waits for its line comes late
            at=at if found.is_omitted else 0.0,
            file=place.file if place else None,
            line=place.line if place else None,
            function=place.function if place else None,
            id=root.id,
            kind=root.kind,
            reason=root.kind,
            explanation=root.explanation,
            hints=root.hints,
            consequences=tuple(cause.kind for cause in rest),
            stack=found.stack,
            in_loop=found.in_loop or bool(kept and kept.in_loop),
            ends_loop=found.ends_loop or bool(kept and kept.ends_loop),
            frame_skipped=found.frame_skipped or bool(kept and kept.frame_skipped),
            origin=origin,
        )

    def take_breaks(self, *, skipped: bool = False, last: bool = False) -> list[e.GraphBreak]:
        """The breaks that were not told yet. `skipped`: the frame has ended without code.

        One whose line is not known waits for what follows it, until that cannot come any more: `skipped` or `last`.
        """
        if (skipped or last) and self.place:
            for key in list(self.unplaced):
                seen = [*self.unplaced[key], *self.nodes.values()]
                self._put(key, (last_place(self.place, self.first_line, seen),))
        taken = [self.breaks[key] for key in self.breaks if key not in self.unplaced]
        self.told.update(key for key in self.breaks if key not in self.unplaced)
        self.breaks = {key: self.breaks[key] for key in self.unplaced}
        if skipped and taken:
            taken[-1] = replace(taken[-1], frame_skipped=True)
        return taken

    def place_breaks(self, line: int) -> list[e.GraphBreak]:
        """The breaks that waited for their line, which is in the function itself."""
        if self.place:
            self.place_below([replace(self.place, line=line)])
        return self.take_breaks()

    def place_below(self, stack: Sequence[e.Place]) -> None:
        """Give the breaks that wait for their line the innermost of these frames."""
        for key in list(self.unplaced) if stack else ():
            self._put(key, stack)

    def _put(self, key: tuple[object, ...], stack: Sequence[e.Place]) -> None:
        event, place = self.breaks[key], stack[-1]
        in_loop = event.in_loop or is_in_loop([place])
        *outside, library = event.stack
        self.breaks[key] = replace(
            event,
            file=place.file,
            line=place.line,
            function=place.function,
            stack=(*outside, *stack, library),
            in_loop=in_loop,
        )
        del self.unplaced[key]

    def take_recompile(
        self, arguments: tuple[str, ...], variants: Variants, compile_id: str | None
    ) -> e.Recompile | None:
        """The recompile whose reasons came before this compile began."""
        if not self.reasons:
            return None
        reason, place = variants.cause(self.reasons, compile_id), self.place
        texts = "\n".join(each.text for each in (reason, *(each for each in self.reasons if each is not reason)))
        self.reasons = []
        source = reason.source
        return e.Recompile(
            file=place.file if place else None,
            line=place.line if place else None,
            function=place.function if place else None,
            guard=reason.guard,
            reason=texts,
            source=plain_source(source, arguments) if source and self.is_wrapper else source,
            dimension=reason.dimension,
            expected=reason.expected,
            actual=reason.actual,
            failed_compile_id=reason.failed,
        )

    def add_code(self, module: str) -> list[e.Kernel]:
        """Keep a generated module's kernels where torch tells their places next; those that nothing keeps back."""
        told = self.take_kernels()
        nodes = code.either(self.nodes, self.backward_nodes) if code.is_backward(module) else self.nodes
        self.kernels = code.parse_kernels(module, nodes)
        return told if any(kernel.handles for kernel in self.kernels) else [*told, *self.take_kernels()]

    def take_kernels(self, traced: Mapping[int, Iterable[e.Place]] | None = None) -> list[e.Kernel]:
        """The kernels that were kept, with the places that torch has `traced` each launch to."""
        kernels, self.kernels = self.kernels, []
        return [
            e.Kernel(name=kernel.name, kind=kernel.kind, launches=kernel.launches, places=kernel.placed(traced or {}))
            for kernel in kernels
        ]


def is_limit(metrics: Mapping[str, Any]) -> bool:
    """Whether a compile was refused since its function had been compiled too often."""
    return metrics.get("fail_type") in _LIMIT_ERRORS or LIMIT_REASON in str(metrics.get("fail_reason"))


def outcome(metrics: Mapping[str, Any], *, broke: bool) -> tuple[str, str | None]:
    """What became of a compile, and why: end, skipped (its code runs eager) or failed (with an exception)."""
    kind, reason = metrics.get("fail_type"), str(metrics.get("fail_reason") or "")
    if kind:
        short = reason.strip().splitlines()[0] if reason.strip() else str(kind)
        hidden = bool(metrics.get("config_suppress_errors"))
        if LIMIT_REASON in reason or (kind in _LEFT if hidden else broke):
            return "skipped", short
        return "failed", f"{kind}: {short}" + (f" ({SUPPRESSED})" if hidden else "")
    # torch 2.9 says that a skipped frame has guarded code, of no guards and no operations
    is_bare = broke and not metrics.get("guard_count") and not metrics.get("graph_op_count")
    if metrics.get("has_guarded_code") is False or (is_bare and "guard_count" in metrics):
        return "skipped", None
    return "end", None
