"""A comparison as Markdown, ready for a pull request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compilescope.domain import units, words
from compilescope.domain.baseline import baseline_sentences
from compilescope.domain.figures import Shown, at, shown_in
from compilescope.report.columns import cache_note, label, of_script, subject, told_apart

_ENVIRONMENT = (
    ("torch", "torch"),
    ("triton", "Triton"),
    ("python", "Python"),
    ("device", "Device"),
    ("driver", "driver"),
    ("cuda", "CUDA"),
    ("cpu", "CPU"),
    ("os", "OS"),
)


def markdown(comparison: Mapping[str, Any]) -> str:
    """The whole document: title, table, recommendation, findings, environment."""
    runs = told_apart(comparison)
    parts = [
        [f"## torch.compile: {_title(comparison)}"],
        _recommendation(comparison.get("recommendation")),
        _baseline(comparison.get("baseline")),
        _table(runs, comparison.get("noise_floor"), cache_note(comparison)),
        *(_findings(run) for run in runs),
        _environment(comparison),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _title(comparison: Mapping[str, Any]) -> str:
    workload = comparison.get("workload") or {}
    script = words.file_name(str(workload.get("script") or "no script"))
    return escape(", ".join([script, *subject(comparison)]))


def _recommendation(found: Mapping[str, Any] | None) -> list[str]:
    if not found:
        return []
    lines = [f"**{escape(found['summary'])}**"]
    if found.get("snippet"):
        lines += ["", "```python", found["snippet"], "```"]
    if found.get("caveats"):
        lines += ["", *(f"- {escape(caveat)}" for caveat in found["caveats"])]
    return lines


def _baseline(found: Mapping[str, Any] | None) -> list[str]:
    if not found:
        return []
    head, *rest = map(escape, [*baseline_sentences(found), *found["differences"]])
    return [f"**{head}**", *(["", *(f"- {text}" for text in rest)] if rest else [])]


def _table(runs: Sequence[Mapping[str, Any]], noise_floor: float | None, note: str) -> list[str]:
    figures = shown_in(Shown.MARKDOWN)
    lines = [
        f"| Configuration | {' | '.join(figure.head for figure in figures)} |",
        f"|---|{'|'.join('---:' if figure.kind.is_number else '---' for figure in figures)}|",
    ]
    cells = [[label(run), *(figure.text_in(run) for figure in figures)] for run in runs]
    lines += [f"| {' | '.join(map(escape, row))} |" for row in cells]
    floor = f" No difference below the noise floor, {units.percent(noise_floor)}, is called one." if noise_floor else ""
    return [
        *lines,
        "",
        "Times are medians per call, back to back. The speedup is the median ratio of neighbouring blocks of eager and "
        "compiled, in the phase and precision of its row, with its 95 % interval; where the machine's speed wanders, "
        f"the medians beside it give another.{floor}{f' {note}' if note else ''}",
    ]


def _findings(run: Mapping[str, Any]) -> list[str]:
    """What a reader should know of one run beyond its row: the verdict's evidence, breaks, recompiles."""
    verdict = run.get("verdict") or {}
    lines = [f"- {escape(reason)}" for reason in verdict.get("reasons") or ()]
    lines += [
        f"- Graph break{_times(row)} at {_place(row)}: {escape(_one_line(row['reason'] or row['kind']))}"
        for row in of_script(run.get("graph_breaks"))
    ]
    lines += [
        f"- Recompile{_times(row)} at {_place(row)}: {escape(_one_line(row['reason'] or row['guard']))}"
        for row in of_script(run.get("recompiles"))
    ]
    if not lines:
        return []
    return [f"**{escape(label(run))}**: {escape(str(verdict.get('summary') or 'still running'))}", "", *lines]


def _times(row: Mapping[str, Any]) -> str:
    return f" (×{units.count(row['count'])})" if row["count"] > 1 else ""


def _place(row: Mapping[str, Any]) -> str:
    where = words.place(row.get("file"), row.get("line"))
    return where if where == words.NOWHERE else code(where)


def _environment(comparison: Mapping[str, Any]) -> list[str]:
    environment = comparison.get("environment") or {}
    known = [f"{title} {environment[key]}" for key, title in _ENVIRONMENT if environment.get(key)]
    made = f"CompileScope {comparison.get('compilescope')}, {comparison.get('created')}"
    inputs = [
        f"{row['name']} {'×'.join(map(str, row['shape'])) if row.get('shape') else ''} {row.get('dtype') or ''}".strip()
        for row in at(comparison, "workload.inputs") or ()
    ]
    lines = [f"Inputs: {escape(', '.join(inputs))}."] if inputs else []
    return [*lines, f"Measured with {escape(', '.join([made, *known]))}."]


def escape(text: str) -> str:
    """Text that Markdown shows as it stands, on one line, in a table or out of it."""
    for sign in ("\\", "|", "`", "*", "_", "<", "[", "]"):
        text = text.replace(sign, "&lt;" if sign == "<" else "\\" + sign)
    return _one_line(text)


def code(text: str) -> str:
    """Text as code, whatever it holds."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{_one_line(text)}{fence}"


def _one_line(text: str) -> str:
    return " ".join(str(text).split())
