"""HandOver: the writer gives its role to a replica that has the whole log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from tidemark.errors import ArgumentIllegalError, DeadlineExceededError
from tidemark.replication.group_store import GroupStore

from .replica_stream import ReplicaStream
from .replicated_commits import ReplicatedCommits

log = structlog.get_logger()

_CATCH_UP_S = 5.0


class HandOver:
    """The hand-over of one writer. Lives on the event loop.

    end          returns the physical offset of the log's end
    share_files  waits until the replicas have the small files
    release_to   gives up the role of the writer for a member, by its identity
    on_done      called when that member has become the writer, and this one is to follow it
    """

    def __init__(
        self,
        commits: ReplicatedCommits,
        group_store: GroupStore,
        *,
        end: Callable[[], int],
        share_files: Callable[[], Awaitable[None]],
        release_to: Callable[[str], Awaitable[None]],
        on_done: Callable[[], None],
    ) -> None:
        self.successor: str | None = None  # address of the coming writer; appends are refused while there is one
        self.has_appointed = False  # the group's state names the coming writer, and changes by its election only
        self._commits = commits
        self._group_store = group_store
        self._end = end
        self._share_files = share_files
        self._release_to = release_to
        self._on_done = on_done
        self._appointing: asyncio.Task[None] | None = None

    async def to(self, stream: ReplicaStream, address: str, in_flight_bytes: Callable[[], int]) -> None:
        """Make the member of *stream*, at *address*, the writer once it has everything.

        in_flight_bytes: returns the bytes of accepted and unanswered batches

        Raises:
            ArgumentIllegalError: another hand-over is under way.
            DeadlineExceededError: it did not catch up in time, or the group's state has changed; this member remains
                the writer.
        """
        if self.successor is not None:
            raise ArgumentIllegalError(
                f"this writer hands over its role to {self.successor} already, so it cannot hand it to "
                f"{stream.member!r}: wait for that",
                argument="member",
            )
        self.successor = address
        try:
            await self._until_all_is_committed(stream, in_flight_bytes)
        except BaseException:
            self.successor = None
            raise
        self._appointing = asyncio.create_task(self._appoint(stream))
        await asyncio.shield(self._appointing)  # a caller that leaves does not stop it halfway

    async def _until_all_is_committed(self, stream: ReplicaStream, in_flight_bytes: Callable[[], int]) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CATCH_UP_S
        while in_flight_bytes() or min(self._commits.committed, stream.acknowledged.end) < self._end():
            if loop.time() > deadline or stream.is_ended:
                raise DeadlineExceededError(f"member {stream.member} did not catch up within {_CATCH_UP_S:g} s")
            await asyncio.sleep(0.005)

    async def _appoint(self, stream: ReplicaStream) -> None:
        """Give the role away durably: this member does not write after a restart."""
        known = self._commits.known
        try:
            taken = await asyncio.to_thread(self._group_store.propose, replace(known, writer=stream.identity))
            if taken.writer != stream.identity:
                raise DeadlineExceededError("the group's state has changed meanwhile: try again")
        except BaseException:
            self.successor = None
            raise
        self.has_appointed = True
        self._commits.learn(taken)
        await self._share_files()
        stream.hand_over()
        await self._release_to(stream.identity)
        log.info("handed_over", member=stream.member, epoch=known.epoch)
        self._on_done()
