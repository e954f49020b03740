"""Programs that know the members of a group continue after failovers, without code of their own for it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import Counter
from typing import Any

import pytest

from tests.replication.conftest import MakeElected
from tests.replication.elected import TOPIC
from tests.replication.load import stored_keys
from tests.replication.nemesis.faults import LinkedMembers
from tests.waiting import until
from tidemark.client import AsyncProducer, Consumer, Producer, Query, ReceivedMessage, SendStatus
from tidemark.client.wire.topic_admin import Topics
from tidemark.client.wire.wire import Wire

TIMEOUT_S = 60.0
APPEND = f"/v1/topics/{TOPIC}/messages"
FAILOVERS = int(os.environ.get("FAILOVERS", "2"))
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300 + 30 * FAILOVERS)]


@pytest.fixture
def members(make_elected: MakeElected) -> LinkedMembers:
    return make_elected(with_readers=True)


class Sending:
    """A program that sends numbered messages one after the other, until `stop`. sent: by their keys."""

    def __init__(self, producer: Any) -> None:
        self.sent: dict[str, tuple[int, int]] = {}
        self.failures: list[BaseException] = []
        self._producer = producer
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stopping.is_set() and not self.failures:
            key = f"k{len(self.sent)}"
            try:
                result = self._producer.send(TOPIC, key.encode(), key=key)
            except BaseException as error:
                self.failures.append(error)
                return
            assert result.status is SendStatus.PUT_OK
            self.sent[key] = result.queue_id, result.queue_offset

    def go_on(self) -> None:
        """Wait until further messages are sent, or one has failed."""
        before = len(self.sent)
        until(lambda: self.failures or len(self.sent) > before + 50, "messages are sent")

    def __enter__(self) -> Sending:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()


class AsyncSending(Sending):
    """The same with asyncio: a few sends at a time."""

    def __init__(self, writers: str, wire: Wire) -> None:
        super().__init__(AsyncProducer(writers, timeout_s=TIMEOUT_S, wire=wire))

    def _run(self) -> None:
        try:
            asyncio.run(self._send_all())
        except BaseException as error:
            self.failures.append(error)

    async def _send_all(self) -> None:
        async with self._producer as producer:
            while not self._stopping.is_set():
                keys = [f"k{len(self.sent) + number}" for number in range(5)]
                results = await asyncio.gather(*(producer.send(TOPIC, key.encode(), key=key) for key in keys))
                assert {result.status for result in results} == {SendStatus.PUT_OK}
                self.sent.update(
                    (key, (result.queue_id, result.queue_offset)) for key, result in zip(keys, results, strict=True)
                )


class Handling:
    """A program that handles the messages of a group. handled: how often each body was."""

    def __init__(self, url: str) -> None:
        self.handled: Counter[bytes] = Counter()
        self.failures: list[BaseException] = []
        self._stopping = threading.Event()
        self._consumer = Consumer(TOPIC, group="handlers", url=url)
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            with self._consumer:
                self._consumer.consume(self._handle, stop=self._stopping)
        except BaseException as error:
            self.failures.append(error)

    def _handle(self, message: ReceivedMessage) -> None:
        self.handled[message.body] += 1

    def __enter__(self) -> Handling:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()


def fail_over(members: LinkedMembers, *, by_pause: bool) -> None:
    """Let the writer hang until it is replaced, or end its machine and start it again."""
    writer = members.until_writer()
    if by_pause:
        members.signal(writer, signal.SIGSTOP)
        members.until_writer(writer)
        members.signal(writer, signal.SIGCONT)
    else:
        members.kill_machine(writer)
        members.until_writer()
        members.start(writer)
    members.until_all_in_sync()


@pytest.mark.parametrize(
    ("wire", "is_async"),
    [
        ("remoting", False),
        pytest.param("grpc", False, marks=pytest.mark.exhaustive),  # quickly in the nemesis
        pytest.param("remoting", True, marks=pytest.mark.exhaustive),
    ],
)
def test_a_producer_and_a_group_go_on_over_failovers(members: LinkedMembers, wire: Wire, is_async: bool) -> None:
    members.start()
    members.until_all_in_sync()
    with (
        Producer(members.writers, timeout_s=TIMEOUT_S, wire=wire) as producer,
        Handling(members.url) as handling,
    ):
        with AsyncSending(members.writers, wire) if is_async else Sending(producer) as sending:
            for number in range(FAILOVERS):
                sending.go_on()
                fail_over(members, by_pause=bool(number % 2))
            sending.go_on()
        assert not sending.failures
        expected = {key.encode() for key in sending.sent}
        until(
            lambda: handling.failures or expected <= handling.handled.keys(),
            "all messages are handled",
            found=members.found,
        )
    assert not handling.failures
    assert handling.handled.keys() == expected
    members.until_level(*members.ports)
    members.stop_readers()
    members.stop()
    logs = [members.log_files(name) for name in members.ports]
    assert all(log == logs[0] for log in logs)
    stored = stored_keys(members.folder("a"))
    assert {key: stored[key] for key in sending.sent} == sending.sent
    assert len([key for key in stored if key.startswith("k")]) == len(sending.sent), "each message is stored once"


def test_readers_and_calls_use_any_member_that_answers(members: LinkedMembers) -> None:
    members.start()
    writer = members.until_all_in_sync()
    with Topics(members.writers) as topics, Query(members.url, timeout_s=5) as query:
        topics.create(TOPIC, queues=1)
        answer = query.post(APPEND, {"messages": [{"body": "1"}]})
        assert answer["status"] == "PUT_OK"
        until(lambda: query.pull(TOPIC, 0, 0)["messages"], "the message is visible")
        members.kill_machine(writer)
        until(lambda: query.pull(TOPIC, 0, 0)["messages"], "another member shows it")
        assert topics.describe(TOPIC)[1] == {0: 1}
        query.put("/v1/groups/g/offsets", {"offsets": [{"topic": TOPIC, "queue_id": 0, "offset": 1}]})
        assert query.post(APPEND, {"messages": [{"body": "2"}]})["queue_offset"] == 1


def test_a_member_that_is_behind_asks_for_patience(members: LinkedMembers) -> None:
    """After the answer 416 (no such offset) a consumer would read from another offset."""
    members.start()
    writer = members.until_all_in_sync()
    other = next(name for name in members.ports if name != writer)
    with Topics(members.writers) as topics:
        topics.create(TOPIC, queues=1)
    with Query(f"http://127.0.0.1:{members.query_ports[other]}") as query:
        until(lambda: query.pull(TOPIC, 0, 0)["status"], "the topic is there")
        page = query.pull(TOPIC, 0, 1_000)
        assert (page["messages"], page["next_offset"]) == ([], 1_000)
