"""Where to look next for the end of what fills a file from its start."""

from __future__ import annotations


def nearer_half(low: int, high: int) -> int:
    """Where to look between *low* > 0 and *high*: at the half, but near the start of what is long.

    Most queues are short, and a page of a file that is looked at is a page of memory.
    """
    return min(2 * low, (low + high) // 2)
