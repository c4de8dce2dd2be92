"""The list of stored comparisons."""
