"""What torch tells by Python's warnings alone, heard as it is shown."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TextIO


def listen(take: Callable[[str], None]) -> Callable[[], None]:
    """Hand the text of every warning that is shown to `take`, then show it as before. The result stops that.

    A script that puts its own function in this place afterwards keeps it.
    """
    before = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        take(str(message))
        before(message, category, filename, lineno, file, line)

    def stop() -> None:
        if warnings.showwarning is show:
            warnings.showwarning = before

    warnings.showwarning = show
    return stop
