"""Values that may only rise: a request after an answer must not get a smaller value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class ObservedValue(NamedTuple, Generic[T]):
    """A value, and the interval of its request. source: the client."""

    invoked: float
    completed: float
    value: int
    source: T


def regressions(observed: Iterable[ObservedValue[T]]) -> Iterator[tuple[ObservedValue[T], ObservedValue[T]]]:
    """Yield (earlier, later) for each value that is less than one known before its request."""
    rows = list(observed)
    by_completion = sorted(rows, key=lambda row: row.completed)
    known: ObservedValue[T] | None = None
    at = 0
    for row in sorted(rows, key=lambda row: row.invoked):
        while by_completion[at].completed < row.invoked:
            if known is None or by_completion[at].value > known.value:
                known = by_completion[at]
            at += 1
        if known is not None and row.value < known.value:
            yield known, row
