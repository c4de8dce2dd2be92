"""Cache keys: what they were made of, and in what two of them differ, in words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_COMPONENT = re.compile(r"\[(\w+)\] ([^:\n]+?): ?(.*)\Z", re.DOTALL)
_INDEXED = re.compile(r"(\w+)\[([^\]]*)\]\Z")
_FIELD = re.compile(r"(\w+)=((?:torch\.Size\([^)]*\))|(?:device\([^)]*\))|\([^)]*\)|\[[^\]]*\]|[^,()]+)")
_SIZE = re.compile(r"torch\.Size\((.*)\)\Z")
_WORDS = {
    "torch_version": "torch version",
    "system_info[device]": "device",
    "system_info[version]": "CUDA or Triton version",
    "system_info[hash]": "",  # a digest of its two neighbours
    "gm": "the graph",
    "aot_config": "how AOTAutograd was called",
    "autograd_config": "configuration of AOTAutograd",
    "grad_enabled": "gradients enabled",
    "disable_amp": "autocast disabled",
    "deterministic_algorithms": "deterministic algorithms",
    "deterministic_algorithms_settings": "deterministic algorithms",
    "cuda_matmul_settings": "precision of CUDA matrix products",
    "cache_key_tag": "tag of the cache",
    "inputs_to_check": "inputs whose alignment is checked",
}
_LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class Component:
    """One part of a key: the hash that went in, its name, and the value as torch prints it."""

    digest: str
    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A component that two keys do not share; None on the side that lacks it. `words` is a phrase for people."""

    name: str
    before: str | None
    after: str | None
    words: str


def parse_components(payload: str) -> tuple[Component, ...]:
    """The components in a cache record's payload; none where it holds none or is cut."""
    try:
        value = json.loads(payload, strict=False)
    except ValueError:
        return ()
    listed = value.get("components") if isinstance(value, dict) else None
    matches = (_COMPONENT.match(str(item)) for item in listed or ())
    return tuple(Component(digest=m[1], name=m[2].strip(), value=m[3].strip()) for m in matches if m)


def distance(before: Sequence[Component], after: Sequence[Component]) -> int:
    """How many components two keys do not share."""
    one, other = (Counter((part.name, part.digest) for part in key) for key in (before, after))
    return max(sum((one - other).values()), sum((other - one).values()))


def differences(before: Sequence[Component], after: Sequence[Component]) -> tuple[Difference, ...]:
    """What changed from one key to the other: a set difference, so order does not matter."""
    one, other = (Counter((part.name, part.digest) for part in key) for key in (before, after))
    gone = _by_name(part for part in before if (part.name, part.digest) in one - other)
    come = _by_name(part for part in after if (part.name, part.digest) in other - one)
    found = []
    for name in dict.fromkeys([*gone, *come]):
        old, new = gone.get(name), come.get(name)
        words = _words(name, old, new)
        if words:
            found.append(Difference(name=name, before=old, after=new, words=words))
    return tuple(found)


def summary(found: Sequence[Difference], most: int = 3) -> str:
    """The differences in one sentence."""
    if not found:
        return "The two keys are made of the same parts."
    more = f", and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(difference.words for difference in found[:most]) + more + "."


def _by_name(parts: Iterable[Component]) -> dict[str, str]:
    return {part.name: part.value for part in parts}


def _words(name: str, before: str | None, after: str | None) -> str:
    if name in _WORDS:
        what = _WORDS[name]
        return f"{what}{_graph(before, after) if name == 'gm' else _change(before, after)}" if what else ""
    match = _INDEXED.match(name)
    if match and match[1] == "example_inputs":
        return f"input {match[2]}{_tensor(before, after)}"
    if match:
        what = {"inductor_config": "inductor config", "fx_kwargs": "argument"}.get(match[1], match[1].replace("_", " "))
        return f"{what} {match[2]}{_change(before, after)}"
    return f"{name.replace('_', ' ')}{_change(before, after)}"


def _change(before: str | None, after: str | None) -> str:
    if before is None or after is None:
        return " is new" if before is None else " is gone"
    old, new = _short(before), _short(after)
    return f": {old} → {new}" if old and new and old != new else " differs"


def _short(value: str) -> str:
    """A value that fits into a phrase, or nothing where it is bytes or a page."""
    plain = re.sub(r"^Boxed\w+\(value=(.*)\)$", r"\1", " ".join(value.split()))
    if not plain.isprintable() or "\N{REPLACEMENT CHARACTER}" in plain:
        return ""
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"


def _tensor(before: str | None, after: str | None) -> str:
    """Which properties of an input changed: its shape, its dtype …"""
    if before is None or after is None:
        return " is new" if before is None else " is gone"
    old, new = dict(_FIELD.findall(before)), dict(_FIELD.findall(after))
    if not (old and new):
        return f": {_kind(before, old)} → {_kind(after, new)}"
    changed = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    # a changed shape changes the rest, which says nothing more
    changed = [name for name in ("shape", "dtype", "device") if name in changed] or changed
    parts = [f"{name} {_plain(old.get(name))} → {_plain(new.get(name))}" for name in changed]
    return f", {', '.join(parts)}" if parts else _change(before, after)


def _kind(value: str, fields: dict[str, str]) -> str:
    return f"a tensor {_plain(fields.get('shape'))}" if fields else _short(value) or "another value"


def _plain(value: str | None) -> str:
    if value is None:
        return "none"
    size = _SIZE.match(value.strip())
    return size[1] if size else value.strip().removeprefix("torch.")


def _graph(before: str | None, after: str | None) -> str:
    """The first line in which two printed graphs differ."""
    old, new = ((text or "").splitlines() for text in (before, after))
    pairs = [(a.strip(), b.strip()) for a, b in zip(old, new, strict=False) if a.strip() != b.strip()]
    count = len(pairs) + abs(len(old) - len(new))
    if not pairs:
        return f" differs in {count} lines" if count else " differs"
    first = f"{_short(pairs[0][0])} → {_short(pairs[0][1])}"
    return f" differs in {count} {'line' if count == 1 else 'lines'}, first: {first}"
