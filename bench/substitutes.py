"""What is said of a substitute wherever it or its numbers show: in lists, tables, pages and files."""

from __future__ import annotations


def mark(stands_for: str) -> str:
    """Say that numbers are those of a substitute; empty for a benchmark itself.

    Args:
        stands_for: name of the benchmark that the suite stands for (`bench.types.Suite.stands_for`); may be empty.
    """
    return f"substitute for {stands_for}: not comparable with published numbers" if stands_for else ""


def marked(heading: str, stands_for: str) -> str:
    """Append `mark` to the heading of a table, where there is something to say."""
    return " · ".join(filter(None, (heading, mark(stands_for))))
