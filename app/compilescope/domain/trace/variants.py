"""The compiled variants of one function, and which of their guards tells why none of them fitted a call."""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.domain.trace.recompiles import Reason

# the order in which torch tests the aspects of one tensor
_TENSOR_ORDER = tuple(enumerate(("dispatch key", "dtype", "device", "requires_grad", "rank", "size", "stride"), 2))
_SIZE, _RANGE = 7, 9
_Property = tuple[str, str | None, int | None]


class Variants:
    """What the failed guards have told so far of each variant of one function.

    A call that fits none of n variants has n reasons, the first guard that failed in each. Only one of them is what
    changed; the others say that the call is not of the other kind that was compiled as well. Two rules find it:

    1. A value that no variant is known to have had is the change: the size 12 where all have 8, though the variant
       used last has, besides, another requires_grad, which a third one shares with the call.
    2. Else each value is known and only their combination is new. Then it is the guard that torch tests latest: all
       before it held, so this variant is the one that the call came closest to.

    Where both leave a choice, the variant that was used last counts, which torch names first.
    """

    def __init__(self) -> None:
        # None: another value than the one that was expected
        self._known: dict[str, dict[_Property, str | None]] = {}

    def cause(self, reasons: Sequence[Reason], compiled: str | None = None) -> Reason:
        """The reason that tells what changed. `compiled`: the variant that the call is compiled as."""
        for reason in reasons:
            if reason.failed and reason.expected is not None:
                self._known.setdefault(reason.failed, {})[reason.property] = reason.expected
        cause = max(reasons, key=lambda reason: (self._is_new(reason, reasons), _order(reason)))
        if compiled:
            own = self._known.setdefault(compiled, {})
            for reason in reasons:
                own[reason.property] = own.get(reason.property) or reason.actual
        return cause

    def _is_new(self, reason: Reason, reasons: Sequence[Reason]) -> bool:
        """Whether no variant is known to hold what the call has there."""
        tested = reason.property
        if reason.actual is not None:
            return all(known.get(tested) != reason.actual for known in self._known.values())
        refuted = {each.failed for each in reasons if each.property == tested}
        return all(tested not in known for variant, known in self._known.items() if variant not in refuted)


def _order(reason: Reason) -> int:
    """How late torch tests a guard: the state of the process, types, a tensor's aspects and values, ranges."""
    aspect, source, dimension = reason.property
    if (source or reason.guard).startswith(("global state", "GLOBAL_STATE")):
        return 0
    if aspect == "check":
        return 1
    if aspect == "value":
        return _RANGE if dimension is not None else _SIZE
    return next((index for index, name in _TENSOR_ORDER if aspect.lower().startswith(name)), 1)
