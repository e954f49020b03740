"""Bisection for the end of the data in a file that is filled from its start."""

from __future__ import annotations


def nearer_half(low: int, high: int) -> int:
    """Return the next probe between *low* > 0 and *high*: the middle, but at most 2 × *low*.

    Most queues are short, and each probed page of a file occupies a page of memory.
    """
    return min(2 * low, (low + high) // 2)
