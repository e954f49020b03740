"""BatchSubmitter: rights, rates, topics and delays of every append, over a real log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from services.writer.batch.batch import Batch
from services.writer.submission.batch_submitter import Sender
from tests.access_files import AccessFolder
from tests.builders import BORN_HOST, properties, wire_batch
from tests.unit.writer.opened_log import LONG_S, SyncGate
from tests.unit.writer.submission.submitting import ONE, Submitting, caller_of, received, run
from tests.waiting import until_async
from tidemark.access.access_file import AccessFile
from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import (
    BatchMalformedError,
    ForbiddenError,
    QueueIllegalError,
    RateLimitedError,
    StoreError,
    TopicNotFoundError,
)
from tidemark.settings.reloaded_files import ReloadedFiles
from tidemark.v1 import commit_log_pb2 as pb

DELAYED = wire_batch((b"a", properties({"DELAY": "3"}), 0))


def test_an_append_to_a_topic_that_exists_is_submitted_at_once(tmp_path: Path) -> None:
    """Without a switch of tasks. One that must create its topic has a rest to await."""

    async def test(parts: Submitting) -> None:
        answered: list[Batch] = []
        sender = Sender(caller_of(), BORN_HOST)
        rest = parts.submitter.submit_now(sender, received(), answered.append)
        assert rest is not None
        assert parts.topics.get("orders") is None
        await rest
        assert parts.topics.get("orders") is not None
        assert parts.submitter.submit_now(sender, received(), answered.append) is None
        await until_async(lambda: len(answered) == 2)
        places = [batch.appended.queue_offset for batch in answered if batch.appended is not None]
        assert [batch.wrapper.born_host for batch in answered] == [BORN_HOST] * 2
        assert len(places) == 2

    run(test, tmp_path)


def test_messages_that_are_given_one_by_one_are_packed_in_the_rest_of_the_work(tmp_path: Path) -> None:
    async def test(parts: Submitting) -> None:
        await parts.append(received())
        for count in (1, 1_500):
            messages = pb.MessageList(messages=[pb.Message(body=b"m")] * count)
            batch = await parts.append(received(packed=None, messages=messages))  # type: ignore[arg-type]
            assert batch.count == count

    run(test, tmp_path)


def test_many_appends_at_once_create_their_topic_once(tmp_path: Path) -> None:
    async def test(parts: Submitting) -> None:
        batches = await asyncio.gather(*(parts.append(received(queue_id=0)) for _ in range(50)))
        offsets = [batch.appended.queue_offset for batch in batches if batch.appended is not None]
        assert sorted(offsets) == list(range(50))

    run(test, tmp_path)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (received(queue_id=9), QueueIllegalError),
        (received(packed=b"\0"), BatchMalformedError),
        (received("unknown"), TopicNotFoundError),
    ],
)
def test_a_refused_append_is_counted_and_not_answered(tmp_path: Path, given: Any, error: type[StoreError]) -> None:
    async def test(parts: Submitting) -> None:
        await parts.topics.ensure("orders")
        answered: list[Batch] = []
        with pytest.raises(error):
            await parts.submitter.submit(Sender(caller_of(), BORN_HOST), given, answered.append)
        await asyncio.sleep(0.01)
        assert answered == []
        assert sum(parts.refusals().values()) == 1
        assert parts.opened.log.written_offset == 0

    run(test, tmp_path, auto_create=False)


def test_an_append_that_is_refused_after_its_topic_was_created_is_counted_once(tmp_path: Path) -> None:
    """Its topic came to exist with fewer queues meanwhile."""

    async def test(parts: Submitting) -> None:
        rest = parts.submitter.submit_now(Sender(caller_of(), BORN_HOST), received(queue_id=3), lambda _: None)
        assert rest is not None
        await parts.topics.create("orders", queues=1, attributes={})
        with pytest.raises(QueueIllegalError):
            await rest
        assert parts.refusals() == {"QUEUE_ID_ILLEGAL": 1}

    run(test, tmp_path)


def test_rights_and_rates_are_checked_before_anything_else(tmp_path: Path) -> None:
    files = AccessFolder(tmp_path)
    writes, reads = files.principal("writes", max_append_bytes_per_s=1), files.principal("reads")
    files.rule("writes", ["Pub"], "Topic:orders")
    files.rule("reads", ["Sub"], "Topic:orders")
    access = ReloadedFiles(AccessFile(files.path), every_ms=10_000, on_reload=lambda _: None)
    guard = Guard(access, RateLimits(), None)

    async def test(parts: Submitting) -> None:
        with pytest.raises(ForbiddenError):
            await parts.append(received(), caller_of(guard, reads))
        with pytest.raises(ForbiddenError):
            await parts.append(received("other"), caller_of(guard, writes))
        caller = caller_of(guard, writes)
        caller.take_append(5_000)  # the first one may exceed the rate
        with pytest.raises(RateLimitedError):
            await parts.append(received(packed=ONE * 100), caller)
        assert parts.refusals().keys() == {"FORBIDDEN", "RATE_LIMITED"}
        assert parts.topics.get("other") is None

    run(test, tmp_path / "store")


def test_a_delayed_message_is_passed_to_the_scheduler_when_it_is_stored(tmp_path: Path) -> None:
    """Its first one creates the schedule topic."""
    disk = SyncGate()

    async def test(parts: Submitting) -> None:
        await parts.append(received(packed=DELAYED))
        assert parts.topics.get("SCHEDULE_TOPIC_XXXX") is not None
        assert [batch.delay is not None for batch in parts.delayed] == [True]
        disk.is_open.clear()
        waiting = asyncio.create_task(parts.append(received(packed=DELAYED)))
        await asyncio.sleep(0.05)
        assert len(parts.delayed) == 1
        disk.is_open.set()
        await asyncio.wait_for(waiting, LONG_S)
        assert len(parts.delayed) == 2
        await parts.append(received())
        assert len(parts.delayed) == 2

    run(test, tmp_path, disk=disk)


def test_a_delayed_message_that_fails_is_not_passed_to_the_scheduler(tmp_path: Path) -> None:
    disk = SyncGate()

    async def test(parts: Submitting) -> None:
        await parts.append(received(packed=DELAYED))
        disk.fails = True
        batch = await parts.append(received(packed=DELAYED))
        assert batch.error is not None
        assert len(parts.delayed) == 1

    run(test, tmp_path, disk=disk)


@pytest.mark.parametrize(("dead_from", "topic"), [(None, "%RETRY%g"), (3, "%RETRY%g"), (2, "%DLQ%g"), (1, "%DLQ%g")])
def test_a_retry_at_the_limit_of_its_interface_is_a_dead_letter(
    tmp_path: Path, dead_from: int | None, topic: str
) -> None:
    """Also where no topic is created automatically: the dead letters are."""

    async def test(parts: Submitting) -> None:
        given = received("%RETRY%g", reconsume_times=2)._replace(dead_from=dead_from)
        batch = await parts.append(given)
        assert (batch.key.topic, batch.is_redirected) == (topic, topic == "%DLQ%g")

    run(test, tmp_path)


class Spans:
    """Records the begin and the end of spans; the tracing library is none of this module's concern."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def begin(self, request: Any, metadata: Any) -> Any:
        self.lines.append(f"begin {request.topic}")
        return self

    def ending(self, answer: Any) -> Any:
        def end(batch: Batch) -> None:
            self.lines.append("end")
            answer(batch)

        return end

    def refuse(self, error: StoreError) -> None:
        self.lines.append(f"refuse {type(error).__name__}")


def test_each_append_has_one_span_that_ends(tmp_path: Path) -> None:
    spans = Spans()

    async def test(parts: Submitting) -> None:
        assert parts.submitter.has_spans
        await parts.append(received())
        with pytest.raises(QueueIllegalError):
            await parts.append(received(queue_id=9))
        with pytest.raises(BatchMalformedError):
            await parts.append(received("new", packed=b"\0"))
        assert spans.lines == [
            "begin orders",
            "end",
            "begin orders",
            "refuse QueueIllegalError",
            "begin new",
            "refuse BatchMalformedError",
        ]

    run(test, tmp_path, spans=spans)


def test_times_of_appends_are_measured(tmp_path: Path) -> None:
    async def test(parts: Submitting) -> None:
        for _ in range(3):
            await parts.append(received())
        assert sum(parts.submitter.times.seconds.counts) == 3

    run(test, tmp_path)
