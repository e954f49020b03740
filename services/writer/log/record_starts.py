"""Places in the log's tail at which a record begins, so that recovery need not read a file from its start."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

_STEPS = 8  # of the tail
_LEAST_STEP_BYTES = 1 << 20


class RecordStarts:
    """Known record starts, ascending. The first one is at least *tail_bytes* before the last, if the log is so long."""

    def __init__(self, tail_bytes: int, known: Iterable[int] = ()) -> None:
        self._tail_bytes = tail_bytes
        self._step = max(tail_bytes // _STEPS, _LEAST_STEP_BYTES)
        self._starts: deque[int] = deque()
        for start in known:
            self.note(start)

    def note(self, start: int) -> None:
        """Note that a record begins at *start*, which is not below any noted before. Most are not kept."""
        starts = self._starts
        if starts and start - starts[-1] < self._step:
            return
        starts.append(start)
        while len(starts) > 1 and starts[1] <= start - self._tail_bytes:
            starts.popleft()

    def all(self) -> tuple[int, ...]:
        """Return the known starts."""
        return tuple(self._starts)
