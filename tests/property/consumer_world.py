"""A world for a real Consumer: queues, a group's record, pulls with planned failures, and a model of positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from tidemark.client.consumer.group_member import Assignment
from tidemark.client.received_message import PulledPage, ReceivedMessage, TopicQueue
from tidemark.client.rest.arrow_page import TablePage
from tidemark.errors import (
    GenerationStaleError,
    MessageNotFoundError,
    OffsetOutOfRangeError,
    OffsetTooSmallError,
    QueryUnreachableError,
    StoreError,
    TopicNotFoundError,
    UnavailableError,
)

TOPICS = ("a", "b")
QUEUES = (TopicQueue("a", 0), TopicQueue("a", 1), TopicQueue("b", 0))
PAGE = 3


class PlannedError(Exception):
    """An error that a test planned."""


class Stored:
    """One queue. The service filters out every fifth message, and the program skips every seventh."""

    def __init__(self) -> None:
        self.min_offset = 0
        self.max_offset = 0
        self.is_known = True

    def is_served(self, offset: int) -> bool:
        return offset % 5 != 4

    def is_wanted(self, offset: int) -> bool:
        return self.is_served(offset) and offset % 7 != 6

    def next_wanted(self, offset: int) -> int | None:
        """Return the first offset from *offset* that a program with `where` must get."""
        return next((o for o in range(offset, self.max_offset) if self.is_wanted(o)), None)


class Faults:
    """The next failures of each kind. The thread of the consumer uses each entry once."""

    def __init__(self) -> None:
        # raised by the decoding of one answer; "late": it does not come yet
        self.answers: list[BaseException | str] = []
        self.fetches: list[BaseException] = []  # raised by the pulls themselves
        self.commits: list[StoreError] = []
        self.lookups: list[StoreError] = []
        self.on_assigned: list[BaseException] = []
        self.on_revoked: list[BaseException] = []
        self.where: list[BaseException] = []  # once, for any message
        self.poison: set[tuple[TopicQueue, int]] = set()  # for as long as the entry is there

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]


class World:
    """Everything outside the consumer."""

    def __init__(self, out_of_range: str, start: str | int, *, has_group: bool = True) -> None:
        self.queues = {queue: Stored() for queue in QUEUES}
        self.faults = Faults()
        self.out_of_range, self.start = out_of_range, start
        self.has_group = has_group
        self.record: dict[TopicQueue, int] = {}
        self.assigned: frozenset[TopicQueue] = frozenset(QUEUES)
        self.incarnation = 1
        self.model: dict[TopicQueue, int | None] = {}  # positions; None: the position where the first answer begins
        self.snapshot: dict[TopicQueue, int] | None = None
        self.known_topics: set[str] = set()
        self.earliest: dict[TopicQueue, int | None] = {}  # the position to which a seek to "earliest" has led
        self.raised: dict[TopicQueue, set[int]] = {queue: set() for queue in QUEUES}  # offsets for which `where` raised

    # ── called by the consumer
    # ──────────────────────────────────────────────────────────────────────────────────────────

    def lookup(self) -> None:
        if self.faults.lookups:
            raise self.faults.lookups.pop()

    def commit(self, offsets: Mapping[TopicQueue, int], incarnation: int) -> None:
        if incarnation != self.incarnation or not offsets.keys() <= self.assigned:
            raise GenerationStaleError("not yours")
        for queue, offset in offsets.items():
            self.check_commit(queue, offset)
        if self.faults.commits:
            raise self.faults.commits.pop()
        self.record.update(offsets)

    def check_commit(self, queue: TopicQueue, offset: int) -> None:
        position = self.model[queue]
        stored = self.queues[queue]
        if position is None:
            position = stored.min_offset
        due = min([*self.held(queue)], default=stored.next_wanted(position))
        assert due is None or offset <= due, f"{queue}: {offset} committed, but {due} was not delivered"
        assert offset <= stored.max_offset

    def reset(self, queue: TopicQueue, error: type[StoreError]) -> StoreError:
        """Refuse an offset as the service does; the model moves as `out_of_range` says."""
        stored = self.queues[queue]
        is_earliest = error is OffsetTooSmallError and self.model[queue] == self.earliest.get(queue)
        if is_earliest:
            self.move(queue, stored.min_offset, is_earliest=True)
        elif self.out_of_range == "earliest":
            self.move(queue, stored.min_offset)
        elif self.out_of_range == "latest":
            self.move(queue, stored.max_offset)
        return error("no such offset", min_offset=stored.min_offset, max_offset=stored.max_offset)

    # ── the model ───────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, queue: TopicQueue) -> None:
        """Note the assignment of *queue*: the model's position is the group's, or the start's."""
        if queue in self.record:
            self.move(queue, self.record[queue])
        elif self.start == "earliest" or self.snapshot is None or queue.topic in self.known_topics:
            self.move(queue, None)
        else:
            end = self.snapshot.pop(queue, None)
            self.move(queue, end)

    def receive(self, queue: TopicQueue, offset: int, *, with_unwanted: bool = False) -> None:
        """Note a message that the program gets: it must be the next one."""
        stored = self.queues[queue]
        assert queue in self.assigned, f"{queue} is another member's"
        position = self.model[queue]
        is_due = stored.is_served if with_unwanted else stored.is_wanted
        assert is_due(offset), f"{queue}: {offset} was filtered out"
        assert offset < stored.max_offset, f"{queue}: {offset} was never stored"
        assert position is not None, f"{queue}: {offset} came without an answer"
        if offset in self.held(queue):
            self.raised[queue].discard(offset)
            return
        passed = self.raised[queue] - {offset}
        due = next((o for o in range(position, stored.max_offset) if is_due(o) and o not in passed), None)
        assert offset == due, f"{queue}: {offset} came, {due} was due"
        self.raised[queue].discard(offset)
        self.model[queue] = offset + 1

    def held(self, queue: TopicQueue) -> list[int]:
        """Return the offsets that other messages may have passed, because the program's function raised for them."""
        position = self.model.get(queue) or 0
        return sorted(offset for offset in self.raised[queue] if offset < position)

    def move(self, queue: TopicQueue, position: int | None, *, is_earliest: bool = False) -> None:
        """Note a seek of the program, or an assignment of *queue*."""
        self.model[queue] = position
        self.earliest[queue] = position if is_earliest else None
        self.raised[queue].clear()


class FakeAssigned:
    """A member of the group. Its queues are those of the world."""

    has_seen_topics = True

    def __init__(self, world: World) -> None:
        self._world = world
        self._assignment = Assignment(0, 0, {})
        self._held: frozenset[TopicQueue] = frozenset()

    def start(self) -> None:
        self._world.lookup()

    def assignment(self) -> Assignment:
        world = self._world
        known = self._assignment
        if known.incarnation != world.incarnation or known.queues != world.assigned:
            offsets = {queue: world.record.get(queue) for queue in sorted(world.assigned)}
            self._assignment = Assignment(world.incarnation, 0, offsets)
        return self._assignment

    def release(self, queues: frozenset[TopicQueue]) -> None:
        pass

    def commit(self, offsets: Mapping[TopicQueue, int]) -> None:
        self._world.commit(offsets, self._assignment.incarnation)

    def close(self) -> None:
        pass


class FakeQuery:
    """The few answers that a consumer requests from the service."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.url = "http://127.0.0.1:9"

    def get(self, path: str) -> dict[str, Any]:
        self._world.lookup()
        kind, name = path.removeprefix("/v1/").split("/", 1)
        if kind == "groups":
            if not self._world.record:
                raise MessageNotFoundError("no such group")
            return {
                "queues": [
                    {"topic": q.topic, "queue_id": q.queue_id, "offset": o} for q, o in self._world.record.items()
                ]
            }
        bounds = [
            {"queue_id": queue.queue_id, "min_offset": stored.min_offset, "max_offset": stored.max_offset}
            for queue, stored in self._world.queues.items()
            if queue.topic == name and stored.is_known
        ]
        if not bounds:
            raise TopicNotFoundError("no such topic")
        return {"queue_ids": [one["queue_id"] for one in bounds], "queues": bounds}

    def queue(self, topic: str, queue_id: int) -> dict[str, int]:
        self._world.lookup()
        stored = self._world.queues[TopicQueue(topic, queue_id)]
        return {"min_offset": stored.min_offset, "max_offset": stored.max_offset}

    def close(self) -> None:
        pass


class FakeFetched(NamedTuple):
    """One answer, decoded when the consumer asks for it."""

    world: World
    queue: TopicQueue
    offset: int | str

    def _range(self) -> tuple[int, int, list[int]]:
        faults = self.world.faults
        fault = faults.answers[-1] if faults.answers else None
        if isinstance(fault, BaseException):  # "late" waits for the next round of pulls
            faults.answers.pop()
            raise fault
        stored = self.world.queues[self.queue]
        start = {"earliest": stored.min_offset}.get(str(self.offset), self.offset)
        assert isinstance(start, int), "latest is resolved before the pull"
        if start < stored.min_offset:
            raise self.world.reset(self.queue, OffsetTooSmallError)
        if start > stored.max_offset:
            raise self.world.reset(self.queue, OffsetOutOfRangeError)
        following = min(start + PAGE, stored.max_offset)
        if self.offset == "earliest":  # nothing was delivered yet: the first answer decides
            self.world.move(self.queue, start)
        return start, following, [o for o in range(start, following) if stored.is_served(o)]

    def page(self) -> PulledPage:
        start, following, offsets = self._range()
        messages = [message(self.queue, offset) for offset in offsets]
        stored = self.world.queues[self.queue]
        return PulledPage(self.queue, "FOUND", messages, start, following, stored.min_offset, stored.max_offset, [])

    def table(self) -> TablePage:
        _, following, offsets = self._range()
        table = pa.table({"queue_offset": pa.array(offsets, pa.int64())})
        return TablePage(self.queue, table, following, [])


class FakePulls:
    """Pulls from the world."""

    is_patient = False
    descriptors: list[int] = []  # noqa: RUF012 - never changed
    unreachable: tuple[float, UnavailableError] | None = None

    def __init__(self, world: World) -> None:
        self._world = world
        self._wanted: dict[TopicQueue, int | str] = {}

    def want(self, queue: TopicQueue, offset: int | str) -> None:
        self._wanted[queue] = offset

    def drop(self, queue: TopicQueue) -> None:
        self._wanted.pop(queue, None)

    def keep_only(self, queues: frozenset[TopicQueue]) -> None:
        self._wanted = {queue: offset for queue, offset in self._wanted.items() if queue in queues}

    def fetched(self, timeout_s: float) -> Iterator[FakeFetched]:
        faults = self._world.faults
        if faults.fetches:
            raise faults.fetches.pop()
        found = []
        for queue, offset in list(self._wanted.items()):
            stored = self._world.queues[queue]
            if offset == stored.max_offset:  # a long poll waits
                continue
            if faults.answers and faults.answers[-1] == "late":
                faults.answers.pop()
                continue
            found.append(FakeFetched(self._world, queue, offset))
        for one in found:
            self.drop(one.queue)
            yield one

    def failed(self, error: UnavailableError) -> None:
        pass

    def wake(self) -> None:
        pass

    def close(self) -> None:
        self._wanted.clear()


def message(queue: TopicQueue, offset: int) -> ReceivedMessage:
    body = f"{queue.topic}-{queue.queue_id}-{offset}".encode()
    return ReceivedMessage(*queue, offset, body, None, (), {}, None, None, 0, 0, 0, 0, 0, 0, "", "")


def unavailable() -> QueryUnreachableError:
    return QueryUnreachableError("away")


class Clock:
    """A clock that advances with each read and each wait, so that runs are repeatable."""

    def __init__(self) -> None:
        self._now = 1000.0

    def monotonic(self) -> float:
        self._now += 0.001
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds
