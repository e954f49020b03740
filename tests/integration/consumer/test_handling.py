"""Handlers over real services: failed messages are retried, then become dead letters; nothing is lost meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.conftest import WITHOUT_SPARK
from tests.integration.consumer.test_consumer import take
from tests.waiting import until
from tidemark.client import Consumer, Message, Producer, ReceivedMessage
from tidemark.errors import TopicNotFoundError
from tidemark.local.local_stack import WRITER, LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with LocalStack(tmp_path_factory.mktemp("handling") / "data", environment=WITHOUT_SPARK) as stack:
        yield stack


class Worker:
    """A consumer that handles in a thread until the block ends."""

    def __init__(self, stack: LocalStack, topic: str, handler: Callable[[ReceivedMessage], object], **how: object):
        self.failures: list[Exception] = []
        self._stop = threading.Event()
        group, auto_commit = how.pop("group", f"{topic}-handlers"), how.pop("auto_commit", True)
        filters: dict[str, Any] = {name: how.pop(name) for name in ("tag", "where") if name in how}
        self._consumer = Consumer(
            topic,
            group=str(group),
            url=stack.query_url,
            auto_commit=bool(auto_commit),
            auto_commit_interval_s=0.1,
            **filters,
        )
        settings = {"writer": stack.writer_address, "first_delay_level": 1, "stop": self._stop, **how}
        settings["on_error"] = lambda _, error: self.failures.append(error)
        self._thread = threading.Thread(target=self._consumer.consume, args=(handler,), kwargs=settings)

    def __enter__(self) -> Worker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()


def send(stack: LocalStack, topic: str, *bodies: str, key: str | None = None) -> None:
    with Producer(stack.writer_address) as producer:
        for body in bodies:
            producer.send(topic, body, tag="T", key=key or body)


def test_a_failed_message_is_retried_and_others_do_not_wait(stack: LocalStack) -> None:
    """It comes with its own topic and the number of earlier attempts."""
    seen: list[ReceivedMessage] = []

    def handle(message: ReceivedMessage) -> None:
        seen.append(message)
        if message.body == b"bad" and message.reconsume_times == 0:
            raise RuntimeError("not yet")

    send(stack, "again", "bad", "good-1", "good-2")
    with Worker(stack, "again", handle) as worker:
        until(lambda: len(seen) == 4)
    assert [message.body for message in seen][-1] == b"bad"
    assert [type(failure) for failure in worker.failures] == [RuntimeError]
    last = seen[-1]
    assert (last.topic, last.reconsume_times, last.tag, last.keys) == ("again", 1, "T", ("bad",))


def test_after_the_last_attempt_a_message_becomes_a_dead_letter(stack: LocalStack) -> None:
    """It is in the group's dead-letter topic with its origin; the group continues."""
    attempts: list[int] = []

    def handle(message: ReceivedMessage) -> None:
        attempts.append(message.reconsume_times)
        raise RuntimeError("never")

    send(stack, "hopeless", "body")
    with Worker(stack, "hopeless", handle, max_attempts=2):
        until(lambda: attempts == [0, 1])
        with Consumer(queues=[("%DLQ%hopeless-handlers", 0)], url=stack.query_url) as dead:
            until(lambda: _exists(dead))
            (letter,) = take(dead, 1)
    assert (letter.body, letter.tag, letter.keys) == (b"body", "T", ("body",))
    assert letter.properties["DLQ_ORIGIN_TOPIC"] == "hopeless"
    with Consumer("hopeless", group="hopeless-handlers", url=stack.query_url) as consumer:
        assert consumer.poll(1) == []


def _exists(consumer: Consumer) -> bool:
    try:
        return bool(consumer.lag())
    except TopicNotFoundError:
        return False


def test_in_ordered_mode_a_failed_message_holds_its_queue(stack: LocalStack) -> None:
    """It is retried at its place."""
    seen: list[str] = []

    def handle(message: ReceivedMessage) -> None:
        seen.append(message.text())
        if seen.count("b") == 1 and message.body == b"b":
            raise RuntimeError("not yet")

    send(stack, "ordered", "a", "b", "c", key="one-queue")
    with Worker(stack, "ordered", handle, ordered=True):
        until(lambda: "c" in seen)
    assert seen == ["a", "b", "b", "c"]


def test_a_failed_message_waits_for_its_writer(stack: LocalStack) -> None:
    """While the writer is down it is not committed, and not lost."""
    attempts: list[int] = []

    def handle(message: ReceivedMessage) -> None:
        attempts.append(message.reconsume_times)
        if message.reconsume_times == 0:
            stack.services[WRITER].kill()
            raise RuntimeError("and nobody takes it back")

    send(stack, "waits", "body")
    with Worker(stack, "waits", handle) as worker:
        until(lambda: attempts == [0])
        time.sleep(1)
        stack.start_service(WRITER)
        until(lambda: attempts == [0, 1], timeout_s=60)
    assert isinstance(worker.failures[0], RuntimeError)


@pytest.mark.parametrize("bodies", [["a", "b", "c"], ["ping"] * 3])
def test_each_failed_message_of_an_inner_batch_is_retried(stack: LocalStack, bodies: list[str]) -> None:
    topic = f"inner-{bodies[0]}"
    seen: list[str] = []
    again: list[ReceivedMessage] = []

    def handle(message: ReceivedMessage) -> None:
        if message.reconsume_times == 0:
            seen.append(message.text())
            raise RuntimeError("not yet")
        again.append(message)

    with Producer(stack.writer_address) as producer:
        producer.topics.create(topic, queues=1, attributes={"+queue.type": "BatchCQ"})
        producer.send_batch([Message(topic, body) for body in bodies])
    with Worker(stack, topic, handle, workers=1) as worker:
        until(lambda: len(again) == len(bodies))
    assert sorted(message.text() for message in again) == bodies
    assert {type(failure) for failure in worker.failures} == {RuntimeError}


@pytest.mark.parametrize("ordered", [False, True])
def test_each_failed_message_of_an_inner_batch_becomes_a_dead_letter(stack: LocalStack, *, ordered: bool) -> None:
    topic = f"inner-dead-{ordered}"

    def fail(_: ReceivedMessage) -> None:
        raise RuntimeError("never")

    with Producer(stack.writer_address) as producer:
        producer.topics.create(topic, queues=1, attributes={"+queue.type": "BatchCQ"})
        producer.send_batch([Message(topic, "ping") for _ in range(3)])
    with (
        Worker(stack, topic, fail, max_attempts=1, ordered=ordered),
        Consumer(queues=[(f"%DLQ%{topic}-handlers", 0)], url=stack.query_url) as dead,
    ):
        until(lambda: _exists(dead))
        assert [message.text() for message in take(dead, 3, timeout_s=30)] == ["ping"] * 3


def test_a_handler_sees_the_properties_of_the_first_send(stack: LocalStack) -> None:
    received: list[ReceivedMessage] = []
    with Producer(stack.writer_address) as producer:

        def send_on(message: ReceivedMessage) -> None:
            if message.reconsume_times == 0:
                raise RuntimeError("not yet")
            producer.send(Message("sent-on", message.body, properties=message.properties))

        producer.topics.create("sent-on", queues=1)
        producer.send("to-send-on", "order", properties={"customer": "7"})
        with Worker(stack, "to-send-on", send_on), Consumer("sent-on", url=stack.query_url) as consumer:
            received += take(consumer, 1, timeout_s=90)
    assert [message.properties for message in received] == [{"customer": "7"}]


def test_a_retry_reaches_only_members_that_read_its_first_topic(stack: LocalStack) -> None:
    seen: dict[str, list[tuple[str, int]]] = {"first": [], "second": []}

    def handler(own: str) -> Callable[[ReceivedMessage], None]:
        def handle(message: ReceivedMessage) -> None:
            seen[own].append((message.text(), message.reconsume_times))
            if message.reconsume_times < 2:
                raise RuntimeError("not yet")

        return handle

    with Producer(stack.writer_address) as producer:
        for own in seen:
            for number in range(4):
                producer.send(own, f"{own}-{number}", tag=own, properties={"own": own})

    def worker(own: str) -> Worker:  # neither filter keeps it from forwarding the other topic's retries
        return Worker(stack, own, handler(own), group="two-topics", tag=own, where={"own": own})

    with worker("first"), worker("second"):
        until(lambda: all(sum(times == 2 for _, times in got) >= 4 for got in seen.values()), timeout_s=120)
    for own, got in seen.items():
        assert {text for text, _ in got} == {f"{own}-{number}" for number in range(4)}
        assert sorted(times for _, times in got) == [0] * 4 + [1] * 4 + [2] * 4


def test_handled_messages_are_committed_without_auto_commit(stack: LocalStack) -> None:
    handled: list[str] = []
    send(stack, "no-auto", "a", "b", "c")
    for _ in range(2):
        with Worker(stack, "no-auto", lambda message: handled.append(message.text()), auto_commit=False):
            until(lambda: len(handled) >= 3)
            time.sleep(0.5)
    assert sorted(handled) == ["a", "b", "c"]


@pytest.mark.parametrize("group", [None, "of-two-topics"])
def test_a_consumer_continues_with_its_other_topic_when_one_is_deleted(stack: LocalStack, group: str | None) -> None:
    topics = [f"deleted-{group}", f"kept-{group}"]
    send(stack, topics[0], "old")
    send(stack, topics[1], "old")
    with (
        Producer(stack.writer_address) as producer,
        Consumer(topics, group=group, url=stack.query_url, auto_commit_interval_s=0.1) as consumer,
    ):
        assert len(take(consumer, 2, timeout_s=60)) == 2
        producer.topics.delete(topics[0])
        got: list[str] = []
        for number in range(20):
            producer.send(topics[1], f"{number}")
            got += [message.text() for message in consumer.poll(0.5)]
        got += [message.text() for message in take(consumer, 20 - len(got), timeout_s=60)]
    assert sorted(got) == sorted(f"{number}" for number in range(20))
