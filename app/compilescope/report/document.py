"""A comparison as a report for a colleague who was not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from functools import partial

import compilescope
from compilescope.domain import events as e
from compilescope.domain import prose, units, words
from compilescope.domain.advice import advise
from compilescope.domain.comparison import Comparison, Recommendation, recommend
from compilescope.domain.measures import measure
from compilescope.domain.run import Run
from compilescope.domain.workload import Measurement
from compilescope.report import chart_blocks, method
from compilescope.report.blocks import Block, Bullets, Card, Code, Document, Facts, Paragraph, Section
from compilescope.report.configuration import Seen, anchor, configuration_section
from compilescope.report.kept import kept_section
from compilescope.report.machinery import shortened
from compilescope.report.names import names
from compilescope.report.overview import comparison_tables
from compilescope.report.sources import reader

FIRST_FIXES = 3
FIX_CHARACTERS = 110
REASON_CHARACTERS = 700
SOURCE_LINES = 200

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_ENVIRONMENT = (
    ("device", "Device"),
    ("device_capability", "Compute capability"),
    ("driver", "Driver"),
    ("cuda", "CUDA"),
    ("cpu", "Processor"),
    ("threads", "Threads"),
    ("os", "System"),
    ("torch", "PyTorch"),
    ("triton", "Triton"),
    ("python", "Python"),
    ("compiler", "C++ compiler"),
)


def build_document(
    comparison: Comparison, *, source: str | None = None, measurement: Measurement | None = None
) -> Document:
    """The report. `source` is the script's text as it was when it ran; `measurement` how long was measured."""
    runs = comparison.runs
    script = runs[0].workload.script if runs else ""
    read, seen = reader(script, source), Seen()
    return Document(
        title=f"{words.file_name(script) or 'No script'}: torch.compile against eager",
        subtitle=" · ".join(_setting(runs)),
        created=_date(comparison.created),
        made_with=f"CompileScope {compilescope.__version__}",
        sections=[
            kept_section("Summary", "summary", lambda: _first_page(comparison)),
            kept_section("All configurations", "all", lambda: _overview(comparison)),
            *(
                kept_section(run.label, anchor(run), partial(configuration_section, run, comparison, read, seen))
                for run in runs
            ),
            kept_section("Environment and method", "method", lambda: _method(comparison, measurement, read(script))),
            kept_section("What was not checked", "not-checked", lambda: _not_checked(comparison)),
        ],
    )


def _overview(comparison: Comparison) -> Section:
    return Section(title="All configurations", blocks=comparison_tables(comparison), anchor="all", starts_page=True)


def _not_checked(comparison: Comparison) -> Section:
    items = method.not_checked(comparison)
    return Section(title="What was not checked", blocks=[Bullets(items=items)], anchor="not-checked")


def _date(created: float) -> str:
    # month names of strftime follow the locale, and the report is in English
    day = datetime.fromtimestamp(created, timezone.utc)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}, {day:%H:%M} UTC"


def _setting(runs: Sequence[Run]) -> list[str]:
    """What was measured, in the fewest words."""
    workload, environment = workload_of(runs), environment_of(runs)
    asked = runs[0].workload if runs else None
    phases = dict.fromkeys(run.workload.phase for run in runs)
    precisions = dict.fromkeys(run.workload.precision for run in runs)
    words = [
        (workload.entry if workload else None) or (asked.entry if asked else None),
        " and ".join(phases),
        " and ".join(precisions),
        device_name(environment),
        f"PyTorch {environment.torch}" if environment and environment.torch else None,
    ]
    return [word for word in words if word]


def _first_page(comparison: Comparison) -> Section:
    runs, found = comparison.runs, recommend(comparison)
    chosen = found.run_id if found else None
    blocks: list[Block] = [
        Paragraph(text="Question", style="label"),
        Paragraph(text=_question(runs)),
        Paragraph(text="Answer", style="label"),
        _answer(comparison, found),
    ]
    figure = chart_blocks.speedup_block(runs, chosen, comparison.noise_floor)
    if figure:
        blocks.append(figure)
    fixes = _first_fixes(comparison, chosen)
    if fixes:
        blocks += [Paragraph(text="Worth fixing first", style="label"), Bullets(items=fixes)]
    return Section(title="Summary", blocks=blocks, anchor="summary")


def _question(runs: Sequence[Run]) -> str:
    count = len(runs)
    subject = "Is this configuration" if count == 1 else f"Which of {count} configurations"
    verb = "" if count == 1 else " is"
    names = {"training": "a training step", "inference": "inference"}
    phase = " and ".join(dict.fromkeys(names[run.workload.phase] for run in runs))
    workload, environment = workload_of(runs), environment_of(runs)
    entry = f" of {workload.entry}" if workload and workload.entry else ""
    device = device_name(environment)
    where = f" on {device}" if device else ""
    precisions = list(dict.fromkeys(run.workload.precision for run in runs))
    own = f" in {' and '.join(precisions)}, each against its own eager" if len(precisions) > 1 else ""
    return (
        f"{subject} of torch.compile{verb} worth using for {phase or 'the work'}{entry}{where}{own}: "
        "faster than eager beyond doubt, with the same results, and soon enough to pay for its first call?"
    )


def _answer(comparison: Comparison, found: Recommendation | None) -> Card:
    if found is None:
        return Card(title="No answer yet", text="No configuration has run to its end.", tone="muted")
    run = next((run for run in comparison.runs if run.id == found.run_id), None)
    if run is None:
        # eager is an answer, and that nothing could be told is another one
        return Card(title=prose.title(found), text=shortened(prose.body(found), REASON_CHARACTERS), tone="muted")
    return Card(
        title=prose.title(found, names(comparison.runs)[run.id]),
        text=prose.body(found),
        code=found.snippet,
        points=[shortened(point) for point in (*_costs(run), *found.caveats)],
        tone="good",
    )


def _costs(run: Run) -> Iterator[str]:
    measures = measure(run)
    if measures.cold_first_call_s is not None:
        warm, own = measures.warm_first_call_s, " with your own cache" if run.uses_own_cache else ""
        then = "in a second process" if own else "once the cache is warm"
        cached = f", {units.duration(warm)} {then}" if warm is not None else ""
        yield f"Cost: a first call of {units.duration(measures.cold_first_call_s)}{own}{cached}."
    eager, compiled = measures.eager_peak_bytes, measures.compiled_peak_bytes
    if eager and compiled:
        yield f"Peak memory {units.size(compiled)}, eager {units.size(eager)}."


def _first_fixes(comparison: Comparison, chosen: str | None) -> list[str]:
    """The gravest advice on the chosen run, or else on all of them, each once."""
    runs = [run for run in comparison.runs if run.id == chosen] or comparison.runs
    found: dict[str, str] = {}
    for run in runs:
        for advice in advise(run, comparison.runs, comparison.noise_floor, comparison.play_offs):
            if advice.severity != "note":
                evidence = shortened(advice.evidence, FIX_CHARACTERS)
                found.setdefault(advice.title, f"{advice.title}: {evidence[:1].lower()}{evidence[1:]}")
    return list(found.values())[:FIRST_FIXES]


def _method(comparison: Comparison, measurement: Measurement | None, source: str | None) -> Section:
    runs = comparison.runs
    blocks: list[Block] = [
        Paragraph(text="Workload", style="label"),
        Facts(rows=_workload_facts(runs, measurement)),
        Paragraph(text="Environment", style="label"),
        Facts(rows=_environment_facts(runs)),
        Paragraph(text="Method", style="label"),
        Bullets(items=method.method_sentences(comparison)),
    ]
    lines = method.commands(runs, measurement)
    if lines:
        blocks += [Paragraph(text="To measure it again", style="label"), Code(text="\n".join(lines))]
    warnings = _warnings(runs)
    if warnings:
        blocks += [Paragraph(text="Warnings of the measurement", style="label"), Bullets(items=warnings)]
    if source:
        cut = source.count("\n") + 1 > SOURCE_LINES
        note = f", its first {SOURCE_LINES} lines" if cut else ""
        blocks += [
            Paragraph(text=f"Script{note}", style="label"),
            Code(text="\n".join(source.expandtabs(4).splitlines()[:SOURCE_LINES]), first_line=1),
        ]
    return Section(title="Environment and method", blocks=blocks, anchor="method", starts_page=True)


def _warnings(runs: Sequence[Run]) -> list[str]:
    """Each kind of warning once, with how often it came in other words."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for row in (row for run in runs for process in run.processes for row in process.warnings):
        groups.setdefault((row.code, units.without_figures(row.message)), {})[row.message] = None
    found = []
    for messages in groups.values():
        more = len(messages) - 1
        times = "once" if more == 1 else f"{more} times"
        found.append(next(iter(messages)) + (f" (And {times} more, with other figures.)" if more else ""))
    return found


def _workload_facts(runs: Sequence[Run], measurement: Measurement | None) -> list[tuple[str, str]]:
    if not runs:
        return []
    asked, found = runs[0].workload, workload_of(runs)
    rows = [
        ("Script", asked.script),
        ("Entry", (found.entry if found else None) or asked.entry or ""),
        ("Phase", ", ".join(dict.fromkeys(run.workload.phase for run in runs))),
        ("Precision", ", ".join(dict.fromkeys(run.workload.precision for run in runs))),
        ("Device", (found.device if found else None) or asked.device or ""),
        ("Module mode", "training" if asked.train_mode or asked.phase == "training" else "eval"),
        ("Gradients in inference", asked.grad_mode if asked.phase == "inference" else ""),
        ("Threads asked for", str(asked.threads or "")),
        ("Arguments", " ".join(asked.arguments)),
    ]
    if found:
        rows += [("Input " + row.name, _input_text(row)) for row in found.inputs]
        rows.append(("Parameters", units.count(found.parameters) if found.parameters else ""))
        rows.append(("The two models", models_text(found)))
    if measurement:
        rows.append(("Timing budget", f"{units.duration(measurement.budget_s)} a configuration"))
        rows.append(("Interval asked for", f"± {units.percent(measurement.interval)}"))
        rows.append(("Seed", str(measurement.seed)))
    return [(name, value) for name, value in rows if value]


def models_text(found: e.WorkloadReady) -> str:
    """How the eager and the compiled model were made, with the reason where not from two loads of the script."""
    words = {
        "loaded_twice": "two loads of the script, the state of one written into the other",
        "copied": "two copies of one model, made the same way",
        "rebuilt": "built twice by one load, from one seed",
        "shared": "one model for both, put back between them",
        # as earlier versions told it
        "deepcopy": "the model and a deep copy",
    }
    text = words.get(found.copies or "", found.copies or "")
    return f"{text}. {found.copies_reason}" if found.copies_reason else text


def _input_text(row: e.Input) -> str:
    shape = "" if row.shape is None else " × ".join(map(str, row.shape)) or "scalar"
    return " ".join(part for part in (shape, row.dtype, row.detail) if part)


def _environment_facts(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """What was the same for all runs; what differed is named with each value."""
    found = [p.environment for run in runs for p in run.processes if p.environment]
    rows = []
    for name, title in _ENVIRONMENT:
        values = dict.fromkeys(str(value) for row in found if (value := getattr(row, name)) is not None)
        if values:
            rows.append((title, " and ".join(values)))
    return rows or [("Environment", "not known: no process came so far as to tell")]


def device_name(environment: e.Environment | None) -> str | None:
    """The processor's name where it is no other device that computes."""
    if environment is None:
        return None
    return environment.cpu or environment.device if environment.device in (None, "cpu") else environment.device


def environment_of(runs: Sequence[Run]) -> e.Environment | None:
    return next((p.environment for run in runs for p in run.processes if p.environment), None)


def workload_of(runs: Sequence[Run]) -> e.WorkloadReady | None:
    return next((p.workload for run in runs for p in run.processes if p.workload), None)
