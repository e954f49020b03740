"""Messages that are read directly from the store's files equal those of the query service."""

from __future__ import annotations

import threading
import zlib

import pytest

from tests.integration.conftest import Served
from tests.integration.consumer.test_consumer import take
from tidemark.client import Consumer, ReceivedMessage, TopicQueue
from tidemark.errors import OffsetOutOfRangeError

COMPRESSED = 0x1


@pytest.fixture
def mixed(served: Served) -> Served:
    """Write single messages with and without tag and keys, compressed ones, and inner batches."""
    served.store.topic("batches", batch=True)
    served.store.append("events", b"plain")
    served.store.append("events", "ü".encode(), {"TAGS": "A", "KEYS": "k1 k2", "UNIQ_KEY": "u", "x": "y"}, flag=3)
    served.store.append("events", zlib.compress(b"long" * 100), {"TAGS": "B"}, sys_flag=COMPRESSED)
    served.store.append_batch("batches", [(b"%d" % i, {"TAGS": "AB"[i % 2]}, i) for i in range(7)])
    served.store.publish()
    return served


def read(served: Served, queue: TopicQueue, count: int, *, from_files: bool, start: int = 0) -> list[ReceivedMessage]:
    place = {"store": served.store.root} if from_files else {"url": served.url}
    with Consumer(queues=[queue], **place) as consumer:
        consumer.seek(queue, start)
        return take(consumer, count)


@pytest.mark.parametrize(("topic", "start", "count"), [("events", 0, 3), ("batches", 0, 7), ("batches", 5, 2)])
def test_messages_from_files_equal_those_over_http(mixed: Served, topic: str, start: int, count: int) -> None:
    """Every field of every message is compared."""
    queue = TopicQueue(topic, 0)
    over_http = read(mixed, queue, count, from_files=False, start=start)
    assert len(over_http) == count
    assert read(mixed, queue, count, from_files=True, start=start) == over_http


@pytest.mark.parametrize("topic", ["events", "batches"])
def test_tables_from_files_equal_those_over_http(mixed: Served, topic: str) -> None:
    """Every column is compared."""
    queue = TopicQueue(topic, 0)
    tables = []
    for place in ({"store": mixed.store.root}, {"url": mixed.url}):
        with Consumer(queues=[queue], **place) as consumer:
            table = consumer.poll_table(10)
            assert table is not None
            tables.append(table)
    assert tables[0].equals(tables[1])
    assert tables[0].num_rows > 0


def test_tags_are_matched_as_by_the_service(mixed: Served) -> None:
    """The unit's hash is compared first, then the string."""
    queue = TopicQueue("batches", 0)
    with Consumer(queues=[queue], store=mixed.store.root, tag="B") as consumer:
        assert [message.body for message in take(consumer, 4, timeout_s=1)] == [b"1", b"3", b"5"]


def test_a_waiting_poll_returns_a_newly_published_message(served: Served) -> None:
    """Another thread or process publishes it."""
    with Consumer(queues=[TopicQueue("events", 0)], store=served.store.root) as consumer:
        assert consumer.poll(0.05) == []
        timer = threading.Timer(0.2, lambda: served.put(b"late", topic="events"))
        timer.start()
        assert [message.body for message in consumer.poll(10)] == [b"late"]
        timer.join()


def test_nothing_above_the_watermark_is_read(served: Served) -> None:
    """Written but unpublished messages are not returned."""
    served.store.append("events", b"written")
    with Consumer(queues=[TopicQueue("events", 0)], store=served.store.root) as consumer:
        assert consumer.poll(0.1) == []


def test_an_out_of_range_offset_raises(served: Served) -> None:
    """The error is that of HTTP."""
    served.put(b"a", topic="events")
    queue = TopicQueue("events", 0)
    with Consumer(queues=[queue], store=served.store.root) as consumer:
        consumer.seek(queue, 1_000)
        with pytest.raises(OffsetOutOfRangeError):
            consumer.poll(1)


def test_a_group_reads_from_files(served: Served) -> None:
    """Leases and offsets come from the service, messages from the files."""
    served.put(b"a", b"b")
    with Consumer("orders", group="billing", url=served.url, store=served.store.root) as consumer:
        assert [message.body for message in take(consumer, 2)] == [b"a", b"b"]
        consumer.commit()
    with Consumer("orders", group="billing", url=served.url) as consumer:
        assert consumer.poll(0.3) == []


@pytest.mark.parametrize("from_files", [False, True])
@pytest.mark.parametrize("as_table", [False, True])
def test_a_damaged_record_is_logged_and_skipped(
    served: Served, caplog: pytest.LogCaptureFixture, *, from_files: bool, as_table: bool
) -> None:
    """The messages around it come, and the log names the damaged one."""
    _, damaged, _ = (served.store.append("events", body) for body in (b"first", b"damaged", b"last"))
    served.store.write_log(damaged.physical_offset + damaged.size - len(b"d\x06events\0\0"), b"?")
    served.store.publish()
    place = {"store": served.store.root} if from_files else {"url": served.url}
    with Consumer(queues=[TopicQueue("events", 0)], **place) as consumer:
        if as_table:
            table = consumer.poll_table(10)
            assert table is not None
            bodies = table["body"].to_pylist()
        else:
            bodies = [message.body for message in take(consumer, 2)]
    assert bodies == [b"first", b"last"]
    (told,) = [
        record.getMessage() for record in caplog.records if record.name == "tidemark.client.consumer.page_buffer"
    ]
    assert told == "queue 0 of events: damaged records were skipped: BODY_CRC at offset 1"
