"""What is copied from the PDF: the tables that lead from a font's glyphs back to characters.

Where several characters share a glyph, Qt notes the one with the lowest number: the tabulator for the space, a Kangxi
radical for a Chinese character. A search for the text as it was written would then find nothing.
"""

from __future__ import annotations

import re
import unicodedata

_TABLES = re.compile(rb"beginbfrange\n.*?endbfrange", re.DOTALL)
_CODE = re.compile(rb"<([0-9A-Fa-f]{4})>(?=[ \]])")


def with_readable_text(pdf: bytes) -> bytes:
    """The same PDF, byte for byte as long, whose glyphs lead back to what was written."""
    return _TABLES.sub(lambda table: _CODE.sub(_usual, table.group()), pdf)


def _usual(code: re.Match[bytes]) -> bytes:
    number = int(code.group(1), 16)
    if number == 0x09:
        return b"<0020>"
    if 0x2E80 <= number <= 0x2FDF:
        usual = unicodedata.normalize("NFKC", chr(number))
        if len(usual) == 1 and ord(usual) < 0x10000:
            return b"<%04X>" % ord(usual)
    return code.group()
