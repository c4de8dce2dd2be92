"""A recommendation in sentences: the same for the window, the terminal, JSON, Markdown and PDF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from compilescope.domain import units, words
from compilescope.domain.breakeven import pays_off_text
from compilescope.domain.comparison import Meeting, Recommendation, Rival
from compilescope.domain.faults import HINT
from compilescope.domain.statistics import Interval
from compilescope.domain.verdict import interval_text

LONG_JOB_S, MINUTE_S = 36_000.0, 60.0
# more than so many configurations are counted instead
MOST_NAMED = 4
_TITLES = {"leave_eager": "Leave it eager", "no_answer": "No answer yet", "nothing": "Nothing can be recommended"}


def title(found: Recommendation, name: str = "") -> str:
    """What to do, in a few words: "Use default". `name`: of the configuration, where its label is not enough."""
    return f"Use {name or found.label}" if found.kind == "use" else _TITLES[found.kind]


def headline(found: Recommendation) -> str:
    """What to do and why, without a full stop: "Use default: 1.84× ± 0.02 against eager"."""
    reason = _reason(found)
    return f"{title(found)}: {reason}" if reason else title(found)


def sentences(found: Recommendation) -> list[str]:
    """What stands behind the headline."""
    told = list(_of_choice(found) if found.kind == "use" else _of_none(found))
    told += map(_meeting_sentence, found.meetings)
    if found.others:
        told.append(f"This holds for {found.scope}.")
        told += [f"{words.upper(one.scope)}: {_lower(headline(one))}." for one in found.others]
    return told


def summary(found: Recommendation) -> str:
    """The headline and all sentences in one text."""
    return " ".join([f"{headline(found)}.", *sentences(found)])


def body(found: Recommendation) -> str:
    """The summary without its title."""
    reason = _reason(found)
    return " ".join([*([f"{words.upper(reason)}."] if reason else []), *sentences(found)])


def saving_text(speedup: Interval, first_call_s: float) -> str:
    """What a long job would save, between the ends of the interval; nothing to say where that is no minute."""
    least, most = (LONG_JOB_S * (1 - 1 / ratio) - first_call_s for ratio in (speedup.low, speedup.high))
    if most < MINUTE_S:
        return ""
    low, high = units.duration(least), units.duration(most)
    span = f"at most {high}" if least < MINUTE_S else high if low == high else f"{low} to {high}"
    return f"; of {units.duration(LONG_JOB_S)} in eager it saves {span}"


def _reason(found: Recommendation) -> str:
    """Why, in half a sentence; empty where one sentence says it all."""
    runs = len(found.outcomes)
    if found.kind == "use":
        best = ""
        if found.is_best:
            best = f", the best of {found.count}" + (" that run different code" if found.has_same_code else "")
        return f"{interval_text(found.speedup)} against eager{best}"
    if found.kind == "nothing":
        return found.problem.removesuffix(".") or "no run finished"
    if found.by_chance:
        return "no configuration is faster beyond chance"
    if runs > MOST_NAMED:
        counts = Counter(row.word for row in found.outcomes)
        listed = ", ".join(f"{count} {word}" for word, count in counts.most_common())
        return f"of {runs} configurations none was shown to be faster ({listed})"
    return "no configuration was shown to be faster" if runs > 1 else ""


def _of_choice(found: Recommendation) -> Iterator[str]:
    if found.same_code:
        names = _listed([row.label for row in found.same_code])
        yield f"It runs the same generated code as {names}; together they come to {interval_text(found.pooled)}."
    if found.ties:
        yield _ties_sentence(found)
    if found.undecided:
        yield f"Still open: {_measured(found.undecided)} could be as fast."
    if found.allowing and interval_text(found.allowing) != interval_text(found.pooled):
        low, high = units.ratio(found.allowing.low), units.ratio(found.allowing.high)
        yield f"Allowing for the choice among {found.count}, its speedup lies between {low} and {high}."
    if found.break_even is not None and found.speedup is not None:
        saved = saving_text(found.speedup, found.first_call_s or 0.0)
        yield f"It {pays_off_text(found.break_even, found.own_break_even)}{saved}."


def _ties_sentence(found: Recommendation) -> str:
    one = found.ties[0]
    is_higher = one.speedup and found.speedup and one.speedup.value > found.speedup.value
    if len(found.ties) == 1 and is_higher:
        return f"{one.label} measured {interval_text(one.speedup)}, which is not a provable gain."
    return f"{_measured(found.ties)} cannot be told apart from it, and it is the simplest."


def _meeting_sentence(found: Meeting) -> str:
    if found.ratio is None:
        return f"A play-off of {found.one} against {found.two} came to nothing: {found.problem}."
    ends = (found.ratio.value, found.ratio.high, found.ratio.low)
    share, low, high = (units.ratio(1 / end).removesuffix("×") for end in ends)
    return f"In a play-off {found.one} took {share} of {found.two}'s time ({low} to {high})."


def _of_none(found: Recommendation) -> Iterator[str]:
    if found.problem:
        yield HINT
    for row in found.by_chance:
        yield f"{row.label} measured {interval_text(row.speedup)}, but one of {found.count} may do so by chance."
    if len(found.outcomes) <= MOST_NAMED and found.kind != "nothing":
        named = {row.run_id for row in found.by_chance}
        yield from (f"{row.label}: {row.summary}" for row in found.outcomes if row.run_id not in named)
    if found.kind == "no_answer":
        # where the timing was given up, more of the same would end the same way
        yield from found.given_up or ["A longer measurement, or a quieter machine, could still tell otherwise."]


def _measured(rivals: Sequence[Rival]) -> str:
    """Names with what they measured: "reduce-overhead (1.43× ± 0.03) and max-autotune (1.41× ± 0.02)"."""
    names = [f"{row.label} ({interval_text(row.speedup) if row.speedup else words.NO_SPEEDUP})" for row in rivals]
    more = len(names) - MOST_NAMED
    return _listed([*names[:MOST_NAMED], *([units.plural(more, "other")] if more > 0 else [])])


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
