"""`bench --baseline`: what has become worse since an earlier comparison."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilescope.domain.baseline import HELD, WORSE, baseline_sentences, checked_baseline
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


def is_held(found: Mapping[str, Any], *, strict: bool = False) -> bool:
    """Whether a baseline was held, with all that is to be said of it on stderr. `strict`: what is inconclusive was not.

    `found`: see `baseline_json`.
    """
    for sentence in found["differences"]:
        print(f"compilescope: note: {sentence}", file=sys.stderr)
    for sentence in baseline_sentences(found):
        print(f"compilescope: {sentence[0].lower()}{sentence[1:]}", file=sys.stderr)
    return found["outcome"] == HELD or (found["outcome"] != WORSE and not strict)
