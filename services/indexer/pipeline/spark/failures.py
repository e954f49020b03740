"""Reads the exceptions of failed queries."""

from __future__ import annotations


def last_line(text: str) -> str:
    """Return the message of the innermost Python exception in Spark's report."""
    lines = [line for line in text.split("=== Streaming Query ===", maxsplit=1)[0].splitlines() if line.strip()]
    return lines[-1] if lines else text
