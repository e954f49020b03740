"""Consumer groups: leases and offsets together, so that only the member that holds a queue sets its offset.

A commit is checked and queued for writing in one step, and writes happen in the order of that queue. The offset of a
newly assigned queue is read after all writes queued before, so that no late commit of the previous holder can follow.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from tidemark.errors import ArgumentIllegalError, GroupActiveError, QueueIllegalError, TopicNotFoundError
from tidemark.format.elements import ELEMENT_OVERHEAD
from tidemark.read.store_reader import StoreReader
from tidemark.remoting_server.client_groups import ClientState

from ..config import QuerySettings
from ..schema.request_bodies import HeartbeatBody, JoinBody, OffsetsBody
from .consumer_offsets import ConsumerOffset, ConsumerOffsets
from .group_membership import MemberLease, QueueIds
from .member_table import MemberTable

T = TypeVar("T")


class Read(Protocol):
    """Runs a function that reads files on a thread."""

    async def __call__(self, function: Callable[[], T], /) -> T: ...


class MemberOffsets(NamedTuple):
    """A member's lease, and the group's offset in each assigned queue; None in a queue without an offset."""

    lease: MemberLease
    offsets: list[int | None]


class GroupClients(Protocol):
    """The members of groups that are RocketMQ's clients. They divide the queues among themselves."""

    def size(self, group: str) -> int:
        """Return the number of members, with those that the process before had and that may come back."""

    def clients(self, group: str) -> list[ClientState]:
        """Return the clients that have sent heartbeats of the group, by id."""

    def topics(self) -> dict[str, list[str]]:
        """Return the topics that each group with such members subscribes."""


class NoClients:
    """The clients of a service that does not serve the remoting protocol."""

    def size(self, _group: str) -> int:
        """Return 0."""
        return 0

    def clients(self, _group: str) -> list[ClientState]:
        """Return no clients."""
        return []

    def topics(self) -> dict[str, list[str]]:
        """Return no groups."""
        return {}


class ConsumerGroups:
    """The consumer groups of one store. Every method raises StoreLockedError if another process manages them."""

    def __init__(
        self, settings: QuerySettings, *, store: StoreReader, offsets: ConsumerOffsets, leases: MemberTable, read: Read
    ) -> None:
        self.leases = leases
        self._settings = settings
        self._store = store
        self._offsets = offsets
        self._read = read
        self.clients: GroupClients = NoClients()  # lives on the event loop

    # -- members --------------------------------------------------------------------------------------------------

    async def join(self, group: str, body: JoinBody) -> MemberOffsets:
        """Add a member. Raises ArgumentIllegalError beyond a limit; see `MemberTable.join`."""
        settings = self._settings
        session_timeout_ms = body.session_timeout_ms or settings.query_session_timeout_ms
        shortest, longest = settings.query_min_session_timeout_ms, settings.query_max_session_timeout_ms
        if not shortest <= session_timeout_ms <= longest:
            raise ArgumentIllegalError(
                f"session_timeout_ms is {session_timeout_ms}: expected {shortest} to {longest}",
                argument="session_timeout_ms",
            )
        _require_at_most(settings.query_max_member_topics, body.topics, "topics")

        def join() -> MemberLease:
            self._offsets.require_owner()
            return self.leases.join(
                group,
                body.member_id or uuid.uuid4().hex,
                body.topics,
                strategy=body.strategy,
                session_timeout_ms=session_timeout_ms,
                queue_ids=self._queue_ids(self.leases.topics(group).union(body.topics)),
            )

        return await self._member_offsets(group, await self._read(join))

    async def heartbeat(self, group: str, member_id: str, body: HeartbeatBody) -> MemberOffsets:
        """Renew a member's session. Raises MemberFencedError if it must join again."""

        def heartbeat() -> MemberLease:
            self._offsets.require_owner()
            return self.leases.heartbeat(
                group,
                member_id,
                generation=body.generation,
                holds=body.queues,
                queue_ids=self._queue_ids(self.leases.topics(group)),
            )

        return await self._member_offsets(group, await self._read(heartbeat))

    async def leave(self, group: str, member_id: str, generation: int | None) -> None:
        """Remove a member; do nothing if it is none."""
        await self._read(self._offsets.require_owner)
        self.leases.leave(group, member_id, generation)

    def _queue_ids(self, topics: Iterable[str]) -> QueueIds:
        return {topic: self._queue_ids_of(topic) for topic in topics}

    def _queue_ids_of(self, topic: str) -> tuple[int, ...] | None:
        try:
            return tuple(self._store.queue_ids(self._store.topic(topic)))
        except TopicNotFoundError:
            return None

    async def _member_offsets(self, group: str, lease: MemberLease) -> MemberOffsets:
        if lease.has_new:  # the previous holders' commits come first
            await self._offsets.settled()

        def look() -> MemberOffsets:
            return MemberOffsets(lease, [self._offset_of(group, *queue) for queue in lease.assigned])

        return await self._read(look)

    def _offset_of(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the group's offset, at least the topic's first one: it may be from a deleted topic of this name."""
        offset = self._offsets.get(group, topic, queue_id)
        return None if offset is None else max(offset, self._store.first_offset(topic, queue_id))

    # -- offsets --------------------------------------------------------------------------------------------------

    async def commit(self, group: str, body: OffsetsBody) -> list[ConsumerOffset]:
        """Set offsets, all or none; durable when this returns.

        Raises:
            GenerationStaleError: the member does not hold them.
            GroupActiveError: *body* names no member, and the group has live members.
            ArgumentIllegalError: an offset is above the end of its queue, and *body* does not force it.
        """
        _require_at_most(self._settings.query_max_commit_queues, body.offsets, "offsets")
        offsets = [ConsumerOffset(group, one.topic, one.queue_id, one.offset) for one in body.offsets]
        if body.member_id is None or body.generation is None:
            await self.reset(group, offsets, force=body.force)
        else:
            as_holder = functools.partial(
                self.leases.as_holder, group, body.member_id, generation=body.generation, queues=body.queues
            )
            if not body.force:
                with as_holder():  # report a lost lease before an offset above the end
                    pass
                await self._read(lambda: self._require_within(offsets))
            holder = as_holder()
            await self._offsets.put(*offsets, under=holder)
        return offsets

    async def reset(self, group: str, offsets: Sequence[ConsumerOffset], *, force: bool = False) -> None:
        """Set offsets of a group that has no members; durable when this returns.

        Args:
            force: accept offsets above the end of their queue.

        Raises:
            GroupActiveError: it has members.
            TopicNotFoundError, QueueIllegalError: a queue does not exist.
            ArgumentIllegalError: an offset is above the end of its queue.
        """
        if clients := self.clients.size(group):
            raise GroupActiveError(
                f"group {group} has {clients} members that are RocketMQ's clients: only they may set its offsets",
                group=group,
                members=clients,
            )
        await self.set_for_clients(group, offsets, force=force)

    async def set_for_clients(self, group: str, offsets: Sequence[ConsumerOffset], *, force: bool = False) -> None:
        """Set offsets that RocketMQ's clients commit; durable when this returns.

        Raises:
            GroupActiveError: the group has members of the REST API.
            TopicNotFoundError, QueueIllegalError: a queue does not exist.
            ArgumentIllegalError: an offset is above the end of its queue.
        """

        def require_queues() -> None:
            for offset in offsets:
                self._store.queue(offset.topic, offset.queue_id)
            if not force:
                self._require_within(offsets)

        await self._read(require_queues)
        await self._offsets.put(*offsets, under=self.leases.without_members(group))

    def _require_within(self, offsets: Sequence[ConsumerOffset]) -> None:
        """Refuse an offset above everything committed: the group would skip messages that are appended later."""
        watermark = self._store.watermark()
        if watermark.may_lack:  # the group has seen the messages on the member that was the writer before
            return
        to_come = watermark.lag_bytes // ELEMENT_OVERHEAD  # at most so many committed messages are not visible yet
        for offset in offsets:
            try:
                queue = self._store.queue(offset.topic, offset.queue_id)
            except (TopicNotFoundError, QueueIllegalError):
                continue  # a member may commit its last offsets in a deleted topic
            end = self._store.bounds(queue, watermark).max_offset
            if offset.offset > end + to_come:
                raise ArgumentIllegalError(
                    f"offset {offset.offset} of queue {offset.queue_id} of {offset.topic} is above the queue's end, "
                    f"{end}: send at most {end}, or set force",
                    argument="offset",
                    topic=offset.topic,
                    queue_id=offset.queue_id,
                    requested_offset=offset.offset,
                    max_offset=end,
                )


def _require_at_most(limit: int, items: Sequence[object], argument: str) -> None:
    if len(items) > limit:
        raise ArgumentIllegalError(
            f"{argument}: {len(items)} in one request, at most {limit}", argument=argument, limit=limit
        )
