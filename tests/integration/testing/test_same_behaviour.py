"""MemoryLog behaves as the real services: each test runs over both."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import threading
import time
import zlib
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pydantic import BaseModel, ValidationError

from tidemark.client import AsyncConsumer, AsyncProducer, Consumer, Message, Producer, ReceivedMessage
from tidemark.errors import (
    BatchEmptyError,
    MessageSizeExceededError,
    OffsetOutOfRangeError,
    PropertiesIllegalError,
    QueueIllegalError,
    TopicNotFoundError,
)
from tidemark.testing import (
    AsyncMemoryConsumer,
    AsyncMemoryProducer,
    MemoryConsumer,
    MemoryLog,
    MemoryProducer,
    TidemarkServer,
)

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_NUMBERS = itertools.count()


class System:
    """Either system, with a topic of its own."""

    def __init__(self, source: TidemarkServer | MemoryLog) -> None:
        self._source = source
        self.topic = f"topic-{next(_NUMBERS)}"

    def producer(self, **options: Any) -> Producer | MemoryProducer:
        return self._source.producer(**options)

    def consumer(self, **options: Any) -> Consumer | MemoryConsumer:
        return self._source.consumer(() if "queues" in options else self.topic, **options)

    def async_producer(self) -> AsyncProducer | AsyncMemoryProducer:
        return self._source.async_producer()

    def async_consumer(self, **options: Any) -> AsyncConsumer | AsyncMemoryConsumer:
        return self._source.async_consumer(self.topic, **options)

    @property
    def writer_address(self) -> str | None:
        return self._source.writer_address if isinstance(self._source, TidemarkServer) else None

    def settle(self) -> None:
        """Wait until everything sent is visible."""
        if isinstance(self._source, TidemarkServer):
            self._source.wait_until_visible()


@pytest.fixture(params=["services", "memory"])
def system(request: pytest.FixtureRequest) -> System:
    if request.param == "memory":
        return System(MemoryLog())
    return System(request.getfixturevalue("tidemark_server"))


class Order(BaseModel):
    book: str
    count: int = 1


def read(consumer: Consumer | MemoryConsumer, count: int) -> list[ReceivedMessage]:
    """Return the next *count* messages, and require that there are no more."""
    found: list[ReceivedMessage] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.poll(timeout_s=0.2)
    assert len(found + consumer.poll(timeout_s=0.1)) == count
    return found


def send_numbers(system: System, count: int, *, queue_id: int = 0) -> None:
    with system.producer() as producer:
        producer.send_batch([Message(system.topic, str(number)) for number in range(count)], queue_id=queue_id)
    system.settle()


def require_table(consumer: Consumer | MemoryConsumer) -> pa.Table:
    """Return the next messages as a table, and require that there are some."""
    table = consumer.poll_table(timeout_s=20)
    assert table is not None
    return table


def fail_after_a_poll(consumer: Consumer | MemoryConsumer) -> None:
    """Be a program that ends with an exception after it got messages."""
    with contextlib.suppress(RuntimeError), consumer:
        while not consumer.poll(timeout_s=1):
            pass
        raise RuntimeError("a failed program")


def test_a_message_arrives_as_it_was_sent(system: System) -> None:
    with system.producer() as producer:
        sent = producer.send(system.topic, "grün", key="k1", keys=["k2"], tag="A", properties={"x": "y"}, flag=7)
        other = producer.send(system.topic, b"other", key="k1")
    assert (sent.queue_id, sent.queue_offset, sent.count, sent.duplicate) == (other.queue_id, 0, 1, False)
    assert other.queue_offset == 1
    with system.consumer() as consumer:
        message, _ = read(consumer, 2)
    assert (message.topic, message.queue_id, message.queue_offset) == (system.topic, sent.queue_id, 0)
    assert (message.text(), message.tag, message.keys, message.flag) == ("grün", "A", ("k1", "k2"), 7)
    assert (dict(message.properties), message.message_id) == ({"x": "y"}, sent.message_ids[0])
    assert message.reconsume_times == 0


def test_a_value_arrives_as_json(system: System) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    with system.producer() as producer:
        producer.send_json(system.topic, {"price": 1.5, "of": [date(2026, 1, 2), None]}, key="k")
    with system.consumer() as consumer:
        (message,) = read(consumer, 1)
    assert message.json() == {"price": 1.5, "of": ["2026-01-02", None]}
    assert message.key == "k"
    assert before < message.stored_at < datetime.now(UTC) + timedelta(seconds=1)


def test_keys_choose_the_same_queues(system: System) -> None:
    """The queues are those of String.hashCode; the numbers were computed by hand for four queues."""
    with system.producer() as producer:
        assert [producer.send(system.topic, b"x", key=key).queue_id for key in ("a", "b", "ab")] == [
            97 % 4, 98 % 4, (97 * 31 + 98) % 4,
        ]  # fmt: skip
        assert len(producer.queues(system.topic)) == 4
        chosen = producer.send(system.topic, b"x", selector=lambda queues, message: queues[3])
        assert chosen.queue_id == 3


def test_a_request_id_is_stored_once(system: System) -> None:
    with system.producer() as producer:
        first = producer.send(system.topic, b"x", queue_id=1, request_id="r1")
        second = producer.send(system.topic, b"x", queue_id=1, request_id="r1")
    assert (second.duplicate, second.queue_offset) == (True, first.queue_offset)
    system.settle()
    with system.consumer() as consumer:
        assert read(consumer, 1)[0].message_id == "r1"


@pytest.mark.parametrize(
    ("body", "options", "error"),
    [
        (b"", {}, BatchEmptyError),
        (bytes((4 << 20) + 1), {}, MessageSizeExceededError),
        (b"x", {"properties": {"a": "b\x01"}}, PropertiesIllegalError),
        (b"x", {"key": 5}, TypeError),
        (b"x", {"colour": "red"}, TypeError),
        (b"x", {"queue_id": 99}, QueueIllegalError),
        (5, {}, TypeError),
    ],
    ids=["empty", "large", "control", "key", "unknown", "queue", "number"],
)
def test_the_same_messages_are_refused(
    system: System, body: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    with system.producer() as producer, pytest.raises(error):
        producer.send(system.topic, body, **options)


def test_tags_and_properties_select(system: System) -> None:
    with system.producer() as producer:
        for number, tag in enumerate("ABC"):
            producer.send(system.topic, str(number), tag=tag, properties={"even": str(number % 2 == 0)})
    system.settle()
    with system.consumer(tag=["A", "C"]) as consumer:
        assert {message.tag for message in read(consumer, 2)} == {"A", "C"}
    with system.consumer(where={"even": "False"}) as consumer:
        assert [message.tag for message in read(consumer, 1)] == ["B"]
    with system.consumer(where=lambda message: message.tag == "C") as consumer:
        assert [message.tag for message in read(consumer, 1)] == ["C"]


def test_a_group_continues_where_it_was(system: System) -> None:
    """Messages that were handed out before an exception are delivered again."""
    send_numbers(system, 3)
    with system.consumer(group="g-" + system.topic) as consumer:
        assert [message.text() for message in read(consumer, 3)] == ["0", "1", "2"]
    send_numbers(system, 2)
    fail_after_a_poll(system.consumer(group="g-" + system.topic))
    with system.consumer(group="g-" + system.topic) as consumer:
        assert [message.queue_offset for message in read(consumer, 2)] == [3, 4]


def test_the_program_commits(system: System) -> None:
    send_numbers(system, 5)
    queue = (system.topic, 0)
    with system.consumer(group="c-" + system.topic, auto_commit=False) as consumer:
        read(consumer, 5)
        consumer.commit({queue: 2})
        consumer.commit_async({queue: 3}).result(10)
    with system.consumer(group="c-" + system.topic, auto_commit=False) as consumer:
        assert [message.queue_offset for message in read(consumer, 2)] == [3, 4]
        assert consumer.position(queue) == 5
        consumer.commit()
    with system.consumer(group="c-" + system.topic) as consumer:
        assert consumer.poll(timeout_s=0.5) == []
    with system.consumer() as alone, pytest.raises(ValueError, match="group"):
        alone.commit()


def test_positions_move(system: System) -> None:
    send_numbers(system, 4)
    queue = (system.topic, 0)
    with system.consumer(queues=[queue], start=1) as consumer:
        assert [message.queue_offset for message in read(consumer, 3)] == [1, 2, 3]
        assert {tuple(one) for one in consumer.assignment} == {queue}
        for place, first in (("earliest", 0), (2, 2), (datetime.now(UTC) - timedelta(hours=1), 0)):
            consumer.seek(queue, place)  # type: ignore[arg-type]
            assert consumer.lag() == {queue: 4 - first}
            assert read(consumer, 4 - first)[0].queue_offset == first
        consumer.seek_all("latest")
        assert consumer.poll(timeout_s=0.3) == []
        with pytest.raises(KeyError):
            consumer.seek((system.topic, 1), 0)
        consumer.seek(queue, 40)
        with pytest.raises(OffsetOutOfRangeError):
            read(consumer, 1)


def test_a_paused_queue_hands_out_nothing(system: System) -> None:
    send_numbers(system, 1, queue_id=0)
    send_numbers(system, 1, queue_id=1)
    queues = [(system.topic, 0), (system.topic, 1)]
    with system.consumer(queues=queues) as consumer:
        consumer.poll(timeout_s=0, max_messages=0)  # knows its queues from here on
        consumer.pause(queues[0])
        assert [message.queue_id for message in read(consumer, 1)] == [1]
        consumer.resume(queues[0])
        assert [message.queue_id for message in read(consumer, 1)] == [0]


def test_latest_begins_with_the_next_message(system: System) -> None:
    send_numbers(system, 2)
    with system.consumer(start="latest") as consumer:
        assert consumer.poll(timeout_s=0.3) == []
        send_numbers(system, 1)
        assert [message.queue_offset for message in read(consumer, 1)] == [2]


def test_a_waiting_poll_gets_a_message_of_another_thread(system: System) -> None:
    send_numbers(system, 1)
    with system.consumer(start="latest") as consumer:
        consumer.poll(timeout_s=0.2)
        sender = threading.Timer(0.3, send_numbers, args=(system, 1))
        sender.start()
        assert len(consumer.poll(timeout_s=20)) == 1
        sender.join()


def test_two_members_of_a_group_share_the_queues(system: System) -> None:
    for queue_id in range(4):
        send_numbers(system, 1, queue_id=queue_id)
    options = {"group": "m-" + system.topic}
    with system.consumer(**options) as first, system.consumer(**options) as second:
        found: list[list[int]] = [[], []]
        deadline = time.monotonic() + 20
        while not (len(first.assignment) == len(second.assignment) == 2) and time.monotonic() < deadline:
            for seen, member in zip(found, (first, second), strict=True):
                seen += [message.queue_id for message in member.poll(timeout_s=0.1)]
        assert len(first.assignment) == len(second.assignment) == 2
        assert not first.assignment & second.assignment


def test_a_function_that_raises_loses_no_message(system: System) -> None:
    """The messages before are handed out first."""
    send_numbers(system, 3)
    broken = [True]

    def wanted(message: ReceivedMessage) -> bool:
        if broken[0] and message.text() == "1":
            raise LookupError("a fault of the program")
        return True

    with system.consumer(where=wanted) as consumer:
        assert [message.text() for message in consumer.poll(timeout_s=20)] == ["0"]
        with pytest.raises(LookupError):
            consumer.poll(timeout_s=20)
        broken[0] = False
        assert [message.text() for message in read(consumer, 2)] == ["1", "2"]


def test_a_new_member_does_not_read_what_was_handed_out(system: System) -> None:
    """Its queues move to it with the messages that the others have confirmed."""
    for queue_id in range(4):
        send_numbers(system, 1, queue_id=queue_id)
    options = {"group": "n-" + system.topic}
    with system.consumer(**options) as first:
        read(first, 4)
        with system.consumer(**options) as second:
            deadline = time.monotonic() + 20
            while len(second.assignment) != 2 and time.monotonic() < deadline:
                assert first.poll(timeout_s=0.1) == second.poll(timeout_s=0.1) == []
            assert len(second.assignment) == 2


def test_a_missing_topic_is_an_error(system: System) -> None:
    with system.consumer() as consumer, pytest.raises(TopicNotFoundError):
        consumer.poll(timeout_s=0.2)


def test_a_handler_that_fails_is_called_again(system: System) -> None:
    """MemoryLog calls it at once, the services after a delay."""
    send_numbers(system, 2)
    calls: list[str] = []
    stop = threading.Event()

    def handle(message: ReceivedMessage) -> None:
        calls.append(message.text())
        if len(calls) == 3:
            stop.set()
        if calls.count("1") == 1 and message.text() == "1":
            raise RuntimeError("the first attempt")

    with system.consumer(group="h-" + system.topic) as consumer:
        consumer.consume(
            handle,
            first_delay_level=1,
            writer=system.writer_address,
            on_error=lambda message, error: None,
            stop=stop,
        )
    assert sorted(calls) == ["0", "1", "1"]


def test_models_are_sent_and_received(system: System) -> None:
    """A body that is no such model raises where the program asks for it, and holds up nothing."""
    with system.producer() as producer:
        producer.send(system.topic, model=Order(book="Moby-Dick"), queue_id=0, key="k")
        producer.send(system.topic, b"{}", queue_id=0)
        producer.send_async(system.topic, value={"book": "Emma", "count": 2}, queue_id=0).result()
    system.settle()
    with system.consumer(model=Order, where=lambda message: message.body != b"1") as consumer:
        first, wrong, last = read(consumer, 3)
    assert first.value == Order(book="Moby-Dick")
    assert first.key == "k"
    assert last.replace(tag="A").value == Order(book="Emma", count=2)
    with pytest.raises(ValidationError, match="book"):
        wrong.value  # noqa: B018 - it raises


def test_values_are_serialized_and_deserialized(system: System) -> None:
    with system.producer(value_serializer=lambda value: f"<{value}>") as producer:
        producer.send(system.topic, value=7, queue_id=0)
        producer.send_oneway(system.topic, value=8, queue_id=0)
        producer.flush()
        producer.send(system.topic, value=9, queue_id=0)
    system.settle()
    with system.consumer(value_deserializer=lambda body: int(body[1:-1])) as consumer:
        assert [message.value for message in read(consumer, 3)] == [7, 8, 9]
    with system.consumer() as consumer, pytest.raises(ValueError, match="model or value_deserializer"):
        read(consumer, 3)[0].value  # noqa: B018 - it raises


def test_tables_are_sent_and_received(system: System) -> None:
    rows = pa.table({"book": ["Moby-Dick", "Emma", "Emma"], "count": [1, 2, 3], "kind": ["A", None, "B"]})
    acknowledged: list[int] = []
    with system.producer() as producer:
        sent = producer.send_table(rows, system.topic, key="book", tag="kind", on_acknowledged=acknowledged.append)
        with pytest.raises(KeyError, match="no column 'title'"):
            producer.send_table(rows, system.topic, key="title")
        with pytest.raises(TypeError, match="kye"):
            producer.send_table(rows, system.topic, kye="book")  # type: ignore[call-arg]
    assert (sent.count, sum(acknowledged)) == (3, 3)
    assert sent.queue_ids[1] == sent.queue_ids[2]
    assert list(sent.queue_offsets[1:]) == [0, 1]
    system.settle()
    tables: list[pa.Table] = []
    with system.consumer() as consumer:
        while sum(table.num_rows for table in tables) < 3:
            tables.append(require_table(consumer))
        assert consumer.poll_table(timeout_s=0.1) is None
    found = pa.concat_tables(tables).sort_by("body")
    assert found["topic"].to_pylist() == [system.topic] * 3
    assert [sorted(found["queue_id"].to_pylist()), found["tag"].to_pylist()] == [
        sorted(sent.queue_ids),
        [None, "B", "A"],
    ]
    assert found["keys"].to_pylist() == [["Emma"], ["Emma"], ["Moby-Dick"]]
    assert found["body"].to_pylist()[0] == b'{"book":"Emma","count":2,"kind":null}'
    assert found["body_crc"].to_pylist() == [zlib.crc32(body) & 0x7FFFFFFF for body in found["body"].to_pylist()]
    with system.consumer(where={"a": "b"}) as consumer, pytest.raises(ValueError, match="where"):
        consumer.poll_table()


def test_both_make_tables_of_one_schema(tidemark_server: TidemarkServer) -> None:
    tables = []
    for source in (System(tidemark_server), System(MemoryLog())):
        send_numbers(source, 1)
        with source.consumer() as consumer:
            tables.append(require_table(consumer))
    assert tables[0].schema == tables[1].schema


def test_programs_of_asyncio_send_and_read(system: System) -> None:
    """A cancelled poll loses no message."""

    async def main() -> list[str]:
        found: list[str] = []
        async with system.async_producer() as producer, system.async_consumer(group="a-" + system.topic) as consumer:
            await producer.send(system.topic, "0", queue_id=0)
            await producer.send_json(system.topic, 1, queue_id=0)
            await producer.send_batch([Message(system.topic, "2"), Message(system.topic, "3")], queue_id=0)
            await producer.flush()
            while len(found) < 4:
                found += [message.text() for message in await consumer.poll(timeout_s=20)]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.poll(timeout_s=20), 0.2)
            await producer.send(system.topic, "4", queue_id=0)
            async for message in consumer:
                found.append(message.text())
                break
            assert await consumer.position((system.topic, 0)) == 5
            assert sum((await consumer.lag()).values()) == 0
            await consumer.seek((system.topic, 0), 3)
            assert [message.text() for message in await consumer.poll(timeout_s=20, max_messages=1)] == ["3"]
        return found

    assert asyncio.run(main()) == ["0", "1", "2", "3", "4"]


def test_a_coroutine_that_fails_is_called_again(system: System) -> None:
    """MemoryLog calls it at once, the services after a delay."""
    send_numbers(system, 2)
    calls: list[str] = []

    async def main() -> None:
        stop = asyncio.Event()

        async def handle(message: ReceivedMessage) -> None:
            calls.append(message.text())
            if len(calls) == 3:
                stop.set()
            if calls.count("1") == 1 and message.text() == "1":
                raise RuntimeError("the first attempt")

        async with system.async_consumer(group="h-" + system.topic) as consumer:
            with pytest.raises(TypeError, match="async function"):
                await consumer.consume(print)  # type: ignore[arg-type]
            await consumer.consume(
                handle, first_delay_level=1, writer=system.writer_address, on_error=lambda *_: None, stop=stop
            )

    asyncio.run(main())
    assert sorted(calls) == ["0", "1", "1"]


@pytest.mark.parametrize(
    ("real", "fake", "missing"),
    [
        (Producer, MemoryProducer, {"address", "log_info", "topics", "would_wait"}),
        (AsyncProducer, AsyncMemoryProducer, set()),
        (Consumer, MemoryConsumer, {"pull"}),
        (AsyncConsumer, AsyncMemoryConsumer, {"pull"}),
    ],
)
def test_a_fake_has_the_calls_of_its_class(real: type, fake: type, missing: set[str]) -> None:
    calls = {name: call for name, call in vars(real).items() if not name.startswith("_")}
    assert calls.keys() - vars(fake).keys() == missing
    for name in calls.keys() - missing - {"send_table"}:
        if callable(calls[name]):
            assert (
                inspect.signature(calls[name]).parameters.keys()
                == inspect.signature(getattr(fake, name)).parameters.keys()
            )
