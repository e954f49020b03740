"""A Consumer against a model of positions: no message is skipped, invented, or committed unseen.

Each run is a program that polls, seeks, pauses, commits and restarts while answers, commits, callbacks and its own
functions fail, queues move between members, retention deletes, and asynchronous calls are cancelled at any point.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from unittest.mock import patch

import pyarrow as pa
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.property.consumer_world import (
    PAGE,
    QUEUES,
    Clock,
    FakeAssigned,
    FakePulls,
    FakeQuery,
    PlannedError,
    World,
    unavailable,
)
from tidemark.client.consumer.async_consumer import AsyncConsumer
from tidemark.client.consumer.consumer import Consumer
from tidemark.client.received_message import ReceivedMessage, TopicQueue
from tidemark.errors import GenerationStaleError, OffsetError, StoreError, UnavailableError

R = TypeVar("R")
PLANNED = (PlannedError, KeyboardInterrupt, StoreError, ValueError)
FAULTS: dict[str, list[Any]] = {
    "answers": [PlannedError("damaged answer"), KeyboardInterrupt(), unavailable(), "late"],
    "fetches": [PlannedError("planned"), KeyboardInterrupt()],
    "commits": [unavailable(), GenerationStaleError("planned")],
    "lookups": [unavailable()],
    "on_assigned": [PlannedError("planned"), KeyboardInterrupt()],
    "on_revoked": [PlannedError("planned"), KeyboardInterrupt()],
    "where": [PlannedError("planned"), KeyboardInterrupt()],
}
queues = st.sampled_from(QUEUES)
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # with threads, shrinking takes minutes
_TIMEOUT_S = 0.012


class Program(RuleBasedStateMachine):
    """The rules that a synchronous and an asynchronous program share."""

    world: World
    consumer: Consumer

    @initialize(
        out_of_range=st.sampled_from(["error", "earliest", "latest"]),
        start=st.sampled_from(["earliest", "latest"]),
        auto_commit=st.booleans(),
        tables=st.sampled_from([False, False, True]),
        counts=st.lists(st.integers(0, 30), min_size=len(QUEUES), max_size=len(QUEUES)),
    )
    def begin(self, out_of_range: str, start: str, auto_commit: bool, tables: bool, counts: list[int]) -> None:
        self.world = World(out_of_range, start)
        for stored, count in zip(self.world.queues.values(), counts, strict=True):
            stored.max_offset = count
        self.auto_commit, self.tables = auto_commit, tables
        self.begun: set[TopicQueue] = set()
        self.paused: set[TopicQueue] = set()
        self.clock = Clock()
        self.patches = contextlib.ExitStack()
        for module in ("consumer", "page_buffer", "offset_committer", "missing_topics"):
            self.patches.enter_context(patch(f"tidemark.client.consumer.{module}.time", self.clock))
        self.open()

    def make(self, **settings: Any) -> Consumer:
        return Consumer(["a", "b"], **settings)

    def open(self) -> None:
        """Start a new process of the program."""
        world = self.world
        self.begun.clear()
        self.paused.clear()
        world.snapshot, world.known_topics = None, set()
        assigned = FakeAssigned(world)
        with (
            patch("tidemark.client.consumer.store_reading.Query", lambda *_, **__: FakeQuery(world)),
            patch("tidemark.client.consumer.store_reading.StoreReading._assigned", lambda *_: assigned),
        ):
            self.consumer = self.make(
                group="g",
                start=world.start,
                where=None if self.tables else self.is_wanted,
                auto_commit=self.auto_commit,
                auto_commit_interval_s=0.0,
                out_of_range=world.out_of_range,
                on_assigned=self.on_assigned,
                on_revoked=self.on_revoked,
            )
        starts = next(iter(self.consumer._stores)).buffer._starts
        prepare = starts.prepare

        def prepare_and_copy() -> None:
            prepare()
            if world.snapshot is None and starts._ends is not None:
                world.snapshot, world.known_topics = dict(starts._ends), set(starts._known)

        starts.prepare = prepare_and_copy  # type: ignore[method-assign]
        next(iter(self.consumer._stores)).buffer._make_pulls = lambda _: FakePulls(world)

    # ── the program's functions ─────────────────────────────────────────────────────────────────────────────────────

    def is_wanted(self, message: ReceivedMessage) -> bool:
        faults = self.world.faults
        fault: BaseException | None = None
        if faults.where:
            fault = faults.where.pop()
        elif (message.queue, message.queue_offset) in faults.poison:
            fault = PlannedError("poison")
        if isinstance(fault, Exception):
            self.world.raised[message.queue].add(message.queue_offset)
        if fault is not None:
            raise fault
        is_wanted = self.world.queues[message.queue].is_wanted(message.queue_offset)
        if not is_wanted:
            self.world.raised[message.queue].discard(message.queue_offset)
        return is_wanted

    def on_assigned(self, _: Consumer, found: frozenset[TopicQueue]) -> None:
        for queue in found - self.begun:
            self.begun.add(queue)
            self.world.begin(queue)
        if self.world.faults.on_assigned:
            raise self.world.faults.on_assigned.pop()

    def on_revoked(self, _: Consumer, lost: frozenset[TopicQueue]) -> None:
        self.begun -= lost
        self.paused -= lost
        if self.world.faults.on_revoked:
            raise self.world.faults.on_revoked.pop()

    def planned(self, fault: Any) -> Any:
        return fault

    # ── the world ───────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(queue=queues, count=st.integers(1, 12))
    def append(self, queue: TopicQueue, count: int) -> None:
        """Append messages."""
        self.world.queues[queue].max_offset += count

    @rule(queue=queues, count=st.integers(1, 4))
    def expire(self, queue: TopicQueue, count: int) -> None:
        stored = self.world.queues[queue]
        stored.min_offset = min(stored.min_offset + count, stored.max_offset)

    @rule(assigned=st.frozensets(queues))
    def rebalance(self, assigned: frozenset[TopicQueue]) -> None:
        self.world.assigned = assigned

    @rule()
    def fence(self) -> None:
        """Expel the member: queues that it gets again begin at the group's record."""
        self.world.incarnation += 1
        self.begun.clear()
        self.paused.clear()

    @rule(kind=st.sampled_from(sorted(FAULTS)), number=st.integers(0, 3))
    def plan_fault(self, kind: str, number: int) -> None:
        """Plan a failure at the next use of *kind*."""
        faults = FAULTS[kind]
        getattr(self.world.faults, kind).append(self.planned(faults[number % len(faults)]))

    @rule(queue=queues, ahead=st.integers(0, 4))
    def plan_poison(self, queue: TopicQueue, ahead: int) -> None:
        """Plan a message for which `where` raises for as long as it exists."""
        position = self.world.model.get(queue) or 0
        self.world.faults.poison.add((queue, position + ahead))

    @rule()
    def mend_poison(self) -> None:
        self.world.faults.poison.clear()

    # ── the program ─────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, call: Callable[[Consumer], R]) -> R | None:
        """Return the call's result, or None for a planned failure."""
        try:
            return call(self.consumer)
        except PLANNED:
            return None

    def receive(self, messages: list[ReceivedMessage] | None) -> None:
        for message in messages or ():
            assert message.queue not in self.paused
            body = f"{message.topic}-{message.queue_id}-{message.queue_offset}"
            assert message.body == body.encode()
            self.world.receive(message.queue, message.queue_offset)

    def receive_table(self, table: pa.Table | None) -> None:
        for row in [] if table is None else table.to_pylist():
            queue = TopicQueue(row["topic"], row["queue_id"])
            self.world.receive(queue, row["queue_offset"], with_unwanted=True)

    @rule(most=st.sampled_from([None, 0, 1, 2, PAGE, 10]), count=st.integers(1, 3))
    def poll(self, most: int | None, count: int) -> None:
        for _ in range(count):
            if self.tables:
                self.receive_table(self.run(lambda consumer: consumer.poll_table(_TIMEOUT_S)))
            else:
                self.receive(self.run(lambda consumer: consumer.poll(_TIMEOUT_S, max_messages=most)))

    @rule(most=st.sampled_from([1, 2, None]), kind=st.sampled_from(sorted(FAULTS)), number=st.integers(0, 3))
    def fail_in_poll(self, most: int | None, kind: str, number: int) -> None:
        """Plan a failure that meets buffered or taken messages."""
        self.poll(most, 1)
        self.plan_fault(kind, number)
        self.poll(most, 2)

    @rule(queue=queues, place=st.one_of(st.sampled_from(["earliest", "latest"]), st.integers(0, 20)))
    def seek(self, queue: TopicQueue, place: Any) -> None:
        before = self.world.model.get(queue), set(self.world.raised[queue])
        stored = self.world.queues[queue]
        target = {"earliest": stored.min_offset, "latest": stored.max_offset}.get(place, place)
        with contextlib.suppress(KeyError, UnavailableError, *PLANNED):
            next(iter(self.consumer._stores)).buffer.cursor(queue)  # so that the seek below assigns nothing
            if queue not in self.begun:
                return
            target = min(target, stored.max_offset)
            self.world.move(queue, target, is_earliest=place == "earliest")
            try:
                self.consumer.seek(queue, target if isinstance(place, int) else place)
            except BaseException:
                self.world.model[queue], self.world.raised[queue] = before
                raise

    @rule(queue=queues)
    def pause(self, queue: TopicQueue) -> None:
        if queue in self.begun and queue in self.consumer.assignment:
            self.consumer.pause(queue)
            self.paused.add(queue)

    @rule(queue=queues)
    def resume(self, queue: TopicQueue) -> None:
        if queue in self.begun and queue in self.consumer.assignment:
            self.consumer.resume(queue)
        self.paused.discard(queue)

    @rule()
    def commit(self) -> None:
        self.run(lambda consumer: consumer.commit())

    @rule()
    def commit_async(self) -> None:
        future = self.run(lambda consumer: consumer.commit_async())
        if future is not None:
            future.exception(10)
            assert not isinstance(future.exception(), AssertionError), future.exception()

    @rule(commit=st.booleans())
    def restart(self, commit: bool) -> None:
        """End the process, with or without its last commit, and start it again at the record."""
        self.run(lambda consumer: consumer.close(commit=commit))
        self.open()

    def teardown(self) -> None:
        """Expect every message that is not deleted, without further failures."""
        if not hasattr(self, "world"):
            return
        with self.patches:
            self.drain()

    def drain(self) -> None:
        self.world.faults.clear()
        self.world.assigned = frozenset(QUEUES)
        for _ in range(400):
            try:
                self.poll_once_without_faults()
            except OffsetError as error:  # `out_of_range` leaves it to the program
                self.skip_deleted(error)
            if self.is_at_end():
                break
        else:
            raise AssertionError(f"messages are missing: {self.world.model}, {self.left()}")
        self.finish()

    def poll_once_without_faults(self) -> None:
        if self.tables:
            self.receive_table(self.consumer.poll_table(_TIMEOUT_S))
        else:
            self.receive(self.consumer.poll(_TIMEOUT_S))
        self.consumer.resume(*self.consumer.assignment)
        self.paused.clear()

    def skip_deleted(self, _: OffsetError) -> None:
        for queue, stored in self.world.queues.items():
            position = self.world.model.get(queue)
            if position is not None and position < stored.min_offset:
                self.world.move(queue, stored.min_offset)
                self.consumer.seek(queue, stored.min_offset)

    def left(self) -> dict[TopicQueue, int]:
        due = {queue: min(self.world.held(queue), default=self.next_due(queue)) for queue in self.world.queues}
        return {queue: offset for queue, offset in due.items() if offset is not None}

    def next_due(self, queue: TopicQueue) -> int | None:
        stored = self.world.queues[queue]
        is_due = stored.is_served if self.tables else stored.is_wanted
        return next((o for o in range(self.world.model.get(queue) or 0, stored.max_offset) if is_due(o)), None)

    def is_at_end(self) -> bool:
        return self.begun == set(QUEUES) and not self.left()

    def finish(self) -> None:
        self.consumer.close()
        assert not self.auto_commit or all(
            self.world.record.get(queue, 0) <= stored.max_offset for queue, stored in self.world.queues.items()
        )


class AsyncProgram(Program):
    """The same with an AsyncConsumer, whose calls are cancelled at chosen points."""

    @property
    def consumer(self) -> Consumer:
        """Return the consumer once its thread has finished its work."""
        if self.wrapper._closing is None:
            self.wrapper._thread.submit(int).result(10)
        return self.wrapper.consumer

    @consumer.setter
    def consumer(self, _: Consumer) -> None:
        pass

    def make(self, **settings: Any) -> Consumer:
        self.loop = getattr(self, "loop", None) or asyncio.new_event_loop()
        self.wrapper = AsyncConsumer(["a", "b"], **settings)
        return self.wrapper.consumer

    def run(self, call: Callable[[Consumer], R]) -> R | None:
        """Run the call in the consumer's thread, after the work in progress."""
        try:
            return self.wrapper._thread.submit(call, self.consumer).result(10)
        except PLANNED:
            return None

    def planned(self, fault: Any) -> Any:
        """A signal interrupts only the main thread, never the consumer's."""
        return PlannedError("planned") if isinstance(fault, KeyboardInterrupt) else fault

    def wait_for(self, awaitable: Awaitable[R]) -> R | None:
        async def wait() -> R:
            return await awaitable

        try:
            return self.loop.run_until_complete(wait())
        except PLANNED:
            return None

    @rule(most=st.sampled_from([None, 1, 2]), turns=st.integers(0, 3), is_taken=st.booleans(), then=st.integers(0, 4))
    def cancel_poll(self, most: int | None, turns: int, is_taken: bool, then: int) -> None:
        """Cancel a poll before it begins, while it waits, or after its messages are taken but not returned."""

        async def cancel() -> None:
            polling = asyncio.ensure_future(
                self.wrapper.poll_table(_TIMEOUT_S) if self.tables else self.wrapper.poll(_TIMEOUT_S, max_messages=most)
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            if is_taken:
                self.wrapper._thread.submit(int).result(10)
            has_ended = not polling.cancel()
            if has_ended:  # a commit counts its messages
                self.deliver(polling)
            if then == 1:
                with contextlib.suppress(*PLANNED):
                    await self.wrapper.commit()
            if not has_ended:
                await asyncio.wait([polling])
                self.deliver(polling)

        self.loop.run_until_complete(cancel())

    def deliver(self, polling: asyncio.Future[Any]) -> None:
        """Receive the result of a poll that has ended, if it has one."""
        if polling.cancelled() or polling.exception() is not None:
            return
        if self.tables:
            self.receive_table(polling.result())
        else:
            self.receive(polling.result())

    @rule(turns=st.integers(0, 4))
    def commit_during_poll(self, turns: int) -> None:
        """Commit in another task during a poll, which is then cancelled."""

        async def both() -> None:
            polling = asyncio.ensure_future(
                self.wrapper.poll_table(_TIMEOUT_S) if self.tables else self.wrapper.poll(_TIMEOUT_S)
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            has_ended = polling.done()
            if has_ended:
                self.deliver(polling)
            committing = asyncio.ensure_future(self.wrapper.commit())
            await asyncio.sleep(0)
            self.wrapper._thread.submit(int).result(10)
            polling.cancel()
            await asyncio.wait([polling, committing])
            committing.exception()
            if not has_ended:
                self.deliver(polling)

        self.loop.run_until_complete(both())

    @precondition(lambda self: not self.tables)
    @rule(count=st.integers(1, 3), cancelled_at=st.integers(0, 3))
    def iterate(self, count: int, cancelled_at: int) -> None:
        """Iterate, cancel in one of the steps, and abandon the iteration."""

        async def steps() -> None:
            iterator = aiter(self.wrapper)
            for number in range(count):
                step = asyncio.ensure_future(anext(iterator))
                await asyncio.wait([step], timeout=0.02 if number != cancelled_at else 0)
                step.cancel()
                await asyncio.wait([step])
                if not step.cancelled() and step.exception() is None:
                    self.receive([step.result()])

        self.loop.run_until_complete(steps())

    @rule(commit=st.booleans())
    def restart(self, commit: bool) -> None:
        self.wait_for(self.wrapper.close(commit=commit))
        self.open()

    def finish(self) -> None:
        self.wait_for(self.wrapper.close())
        self.wait_for(self.wrapper.close())
        self.loop.close()


def test_a_consumer_skips_and_invents_no_message() -> None:
    run_state_machine_as_test(Program, settings=settings(max_examples=150, stateful_step_count=40))


def test_an_async_consumer_skips_and_invents_no_message() -> None:
    run_state_machine_as_test(
        AsyncProgram, settings=settings(max_examples=80, stateful_step_count=30, phases=NO_SHRINKING)
    )
