"""ReplicaStream: what the writer sends to one replica, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from .copied_files import FileChanges
from .messages import HEARTBEAT_S, Acknowledged, Config, Hello, TakeOver, Told
from .piece import Piece
from .recent_pieces import RecentPieces
from .stored_piece import StoredPieces

if TYPE_CHECKING:
    from .replicated_commits import ReplicatedCommits

_MOST_BYTES = 1 << 20  # of a message, unless one batch is larger
_LOOK_S = 1.0  # between two looks at files that no bytes of the log need


class ReplicaStream:
    """One stream. Lives on the event loop.

    start    physical offset of the first byte to send
    files    finds changed files, for this stream alone
    stored   a reader of the log's files, for this stream alone
    changes  returns the number of changes of files so far for which callers wait
    needed   returns the physical offset from which another member may still have to copy the log
    """

    def __init__(
        self,
        hello: Hello,
        start: int,
        pieces: RecentPieces,
        commits: ReplicatedCommits,
        files: FileChanges,
        stored: StoredPieces,
        *,
        changes: Callable[[], int],
        needed: Callable[[], int],
    ) -> None:
        self.member, self.identity = hello.member, hello.identity
        self.acknowledged = Acknowledged(0, 0, 0)
        self._start = start
        self.awake = asyncio.Event()
        self.is_ended = False
        self.cancel: Callable[[], object] = lambda: None  # ends the call that sends the messages, even if it is stuck
        self._position = start
        self._pieces = pieces
        self._commits = commits
        self._files = files
        self._stored = stored
        self._changes = changes
        self._needed = needed
        self._checked = self._sent_number = 0
        self._told_committed = -1
        self._look_at = 0.0
        self._takes_over = False
        self._heard_at = asyncio.get_running_loop().time()

    @property
    def silent_s(self) -> float:
        """Seconds since the last message of the replica."""
        return asyncio.get_running_loop().time() - self._heard_at

    @property
    def copied(self) -> int:
        """Physical offset below which the replica has no need of the log."""
        return max(self._start, self.acknowledged.end)

    def acknowledge(self, acknowledged: Acknowledged) -> None:
        """Note a message of the replica."""
        self._heard_at = asyncio.get_running_loop().time()
        self.acknowledged = acknowledged

    def has_files(self, changes: int) -> bool:
        """Return True if the replica has synced the files as they were after the first *changes* changes."""
        return self._checked >= changes and self.acknowledged.config_number >= self._sent_number

    def hand_over(self) -> None:
        """Make the replica the writer; nothing is sent after that."""
        self._takes_over = True
        self.awake.set()

    def end(self) -> None:
        """End the stream."""
        self.is_ended = True
        self.awake.set()

    async def messages(self) -> AsyncIterator[Told]:
        """Yield the messages until `end`.

        Raises:
            CorruptMessageError: the log's files are damaged where the replica needs them.
            OffsetTooSmallError: they were deleted meanwhile.
        """
        while not self.is_ended:
            self.awake.clear()
            for config in self._configs():
                yield self._told(config)
            if self._takes_over:
                yield self._told(TakeOver())
                return
            pieces = await self._next_pieces()
            for piece in pieces:
                yield self._told(piece)
                self._position = piece.end
            if not pieces:
                if self._told_committed == self._commits.committed and await self._has_news():
                    continue
                yield self._told(None)

    def _told(self, message: Piece | Config | TakeOver | None) -> Told:
        self._told_committed = self._commits.committed
        return Told(message, self._told_committed, self._pieces.end, self._needed())

    async def _has_news(self) -> bool:
        """Wait for news; return False if there are none for the time of a heartbeat."""
        try:
            await asyncio.wait_for(self.awake.wait(), HEARTBEAT_S)
        except TimeoutError:
            return False
        return True

    def _configs(self) -> list[Config]:
        changes, now = self._changes(), asyncio.get_running_loop().time()
        is_time = now >= self._look_at
        if is_time:
            self._look_at = now + _LOOK_S
        configs = []
        for name, content in self._files.take(needed_only=not is_time):
            self._sent_number += 1
            configs.append(Config(name, content, self._sent_number))
        self._checked = changes
        return configs

    async def _next_pieces(self) -> list[Piece]:
        start = self._position
        pieces = self._pieces.following(start, most_bytes=_MOST_BYTES)
        if pieces is not None:
            return pieces
        end, committed = self._pieces.next_start(start), self._commits.committed
        if start < committed:
            return [await self._read(start, min(end, committed), _MOST_BYTES)]
        # The batches in uncommitted bytes of an earlier writer are not known, so these bytes are one piece.
        return [await self._read(start, end, end - start)]

    async def _read(self, start: int, end: int, most_bytes: int) -> Piece:
        return await asyncio.to_thread(self._stored.piece, start, end, most_bytes=most_bytes)
