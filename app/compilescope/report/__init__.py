"""A comparison as documents: tables, Markdown, JSON, PDF."""
