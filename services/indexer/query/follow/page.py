"""Page: messages of one queue, encoded for followers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidemark.read.records import Skipped


class Page(NamedTuple):
    """Messages of one queue from one read.

    rows     the encoded messages: one element per message for events, otherwise any number of pieces
    offsets  the queue offset of each message, for events; otherwise empty
    begin    the queue offset from which the queue was read
    is_last  True if the queue had no further messages
    """

    rows: Sequence[bytes | memoryview]
    offsets: Sequence[int]
    message_count: int
    begin: int
    next_offset: int
    is_last: bool
    skipped: Sequence[Skipped]

    @property
    def size(self) -> int:
        """Size of the encoded messages in bytes."""
        return sum(map(len, self.rows))
