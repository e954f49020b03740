"""RecentPieces: the newest pieces of a writer's log in memory, from which the streams to replicas are fed.

Records in the files do not show where a batch ends, so that uncommitted bytes can only be sent from here: a promoted
replica must not keep half a batch.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable

from .piece import Piece


class RecentPieces:
    """Pieces in the order of the log. The appender adds them; streams read them in any thread.

    end         physical offset of the log's end
    most_bytes  kept of committed pieces, for replicas that are a little behind; uncommitted ones are always kept
    on_added    called after each addition, in the appender's thread
    """

    def __init__(self, end: int, *, most_bytes: int, on_added: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()  # guards all fields
        self._pieces: deque[Piece] = deque()
        self._bytes = 0
        self._end = end
        self._committed = end
        self._most_bytes = most_bytes
        self._on_added = on_added

    @property
    def end(self) -> int:
        """Physical offset after the newest piece."""
        return self._end

    def add(self, piece: Piece) -> None:
        """Add the next piece. Its data must not be changed any more."""
        with self._lock:
            assert piece.start == self._end, (piece.start, self._end)
            self._pieces.append(piece)
            self._bytes += len(piece.data)
            self._end = piece.end
            self._drop()
        self._on_added()

    def committed(self, end: int) -> None:
        """Note that everything below physical offset *end* is committed."""
        with self._lock:
            self._committed = max(self._committed, end)
            self._drop()

    def _drop(self) -> None:
        while self._pieces and self._bytes > self._most_bytes and self._pieces[0].end <= self._committed:
            self._bytes -= len(self._pieces.popleft().data)

    def following(self, start: int, *, most_bytes: int) -> list[Piece] | None:
        """Return the pieces from physical offset *start* on, at least one if there is any, else up to *most_bytes*.

        Returns an empty list at the log's end, and None if *start* is before the oldest piece, or within a batch: the
        bytes up to the next piece are in the files.
        """
        with self._lock:
            if start == self._end:
                return []
            number = bisect_right(self._pieces, start, key=_start_of) - 1
            first = self._pieces[number].rest_from(start) if number >= 0 else None
            if first is None:
                return None
            found, size = [first], len(first.data)
            for at in range(number + 1, len(self._pieces)):
                size += len(self._pieces[at].data)
                if size > most_bytes:
                    break
                found.append(self._pieces[at])
            return found

    def next_start(self, start: int) -> int:
        """Return the start of the first piece after physical offset *start*; the log's end if there is none."""
        with self._lock:
            after = bisect_right(self._pieces, start, key=_start_of)
            return self._pieces[after].start if after < len(self._pieces) else self._end


def _start_of(piece: Piece) -> int:
    return piece.start
