"""Parts of a report that a fault of this program cannot take the rest away with."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compilescope.domain.faults import HINT, fault
from compilescope.report.blocks import Block, Paragraph, Section


def kept_blocks(what: str, blocks: Iterable[Block]) -> list[Block]:
    """The blocks; a sentence in place of those that could not be made. `what`: "The table of kernels"."""
    found: list[Block] = []
    try:
        found.extend(blocks)
    except Exception as error:  # a fault of ours, whatever it is
        found.append(Paragraph(text=f"{fault(f'{what} is missing here', error)} {HINT}", tone="warn"))
    return found


def kept_section(title: str, anchor: str, make: Callable[[], Section]) -> Section:
    """The section; one that holds a sentence where it could not be made."""
    try:
        return make()
    except Exception as error:  # as above
        text = f"{fault('This part is missing', error)} {HINT}"
        return Section(title=title, anchor=anchor, blocks=[Paragraph(text=text, tone="warn")])
