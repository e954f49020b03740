"""ReplicaLags: for how long replicas have been behind the log's end."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Lag(NamedTuple):
    """How far a connected replica is behind the log's end, and for how long."""

    bytes: int
    seconds: float


class _End(NamedTuple):
    """The log's end at a time of the event loop."""

    time_s: float
    offset: int


class ReplicaLags:
    """The log's ends of the last seconds. allowed_s: a lag beyond this is shown as somewhat more than this."""

    def __init__(self, allowed_s: float) -> None:
        self.allowed_s = allowed_s
        self._ends: deque[_End] = deque()

    def note_end(self, offset: int, *, now_s: float) -> None:
        """Note the log's end."""
        self._ends.append(_End(now_s, offset))
        while len(self._ends) > 1 and self._ends[1].time_s <= now_s - self.allowed_s:
            self._ends.popleft()

    def seconds(self, synced: int, *, now_s: float) -> float:
        """Return for how long a member has been behind that has synced everything below physical offset *synced*."""
        behind = next((end for end in self._ends if end.offset > synced), None)
        return 0.0 if behind is None else now_s - behind.time_s
