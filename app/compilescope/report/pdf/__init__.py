"""The comparison report as a PDF: vector charts, text to select and search, embedded fonts, bookmarks and links."""

from compilescope.report.pdf.writer import PAGES, write_pdf

__all__ = ["PAGES", "write_pdf"]
