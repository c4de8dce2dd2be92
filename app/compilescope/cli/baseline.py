"""`bench --baseline`: what has become worse since an earlier comparison."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilescope.domain.baseline import checked_baseline, differences, is_comparable, regressions
from compilescope.domain.errors import UsageError


def read_baseline(name: str) -> Mapping[str, Any]:
    """The comparison in a file that `bench --json` wrote."""
    try:
        value = json.loads(Path(name).read_bytes())
    except OSError as error:
        raise UsageError(
            f"{name} cannot be read: {error.strerror or error}.", hint="Give a file made by `bench --json FILE`."
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is no JSON ({error}).", hint="Give a file made by `bench --json FILE`.") from error
    return checked_baseline(value, name)


def is_held(result: Mapping[str, Any], baseline: Mapping[str, Any], name: str) -> bool:
    """Whether nothing has become worse; what has, is told on stderr, a line each.

    A baseline with none of these runs is not held: a guard that compares nothing would let everything pass.
    """
    for sentence in differences(result, baseline):
        print(f"compilescope: note: {sentence}", file=sys.stderr)
    if not is_comparable(result, baseline):
        print(
            f"compilescope: nothing could be compared with {name}, so it is not held: it has no run of this script\n"
            "  with the same entry, arguments, configuration, input sizes and L2 flush. Make a new baseline with\n"
            "  `bench --json FILE`.",
            file=sys.stderr,
        )
        return False
    found = regressions(result, baseline)
    for sentence in found:
        print(f"compilescope: worse than {name}: {sentence}", file=sys.stderr)
    if not found:
        print(f"compilescope: nothing has become worse than in {name}.", file=sys.stderr)
    return not found
