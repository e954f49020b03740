"""Consumer without a group, over real HTTP."""

from __future__ import annotations

import datetime
import threading
import time

import pytest

from tests.integration.conftest import QUEUES, Served
from tidemark.client import Consumer, ReceivedMessage, TopicQueue
from tidemark.errors import OffsetOutOfRangeError, OffsetTooSmallError, TopicNotFoundError, UnavailableError

Q0, Q1 = TopicQueue("orders", 0), TopicQueue("orders", 1)


def take(consumer: Consumer, count: int, *, timeout_s: float = 10) -> list[ReceivedMessage]:
    """Return *count* messages, or those that came in time."""
    deadline = time.monotonic() + timeout_s
    taken: list[ReceivedMessage] = []
    while len(taken) < count and time.monotonic() < deadline:
        taken += consumer.poll(0.2, max_messages=count - len(taken))
    return taken


def test_all_queues_are_read_each_in_its_order(served: Served) -> None:
    """Without a group a consumer has all queues of its topics."""
    for queue_id in range(QUEUES):
        served.put(*(b"%d-%d" % (queue_id, i) for i in range(20)), queue_id=queue_id)
    with Consumer("orders", url=served.url) as consumer:
        got = take(consumer, 20 * QUEUES)
    by_queue = {q: [m.body for m in got if m.queue_id == q] for q in range(QUEUES)}
    assert by_queue == {q: [b"%d-%d" % (q, i) for i in range(20)] for q in range(QUEUES)}


def test_a_message_has_its_fields(served: Served) -> None:
    """Tag, keys and properties are separate fields; the body is bytes."""
    served.put('{"n": "ä"}'.encode(), TAGS="A", KEYS="k1 k2", UNIQ_KEY="u1", region="eu")
    with Consumer(queues=[Q0], url=served.url) as consumer:
        (message,) = take(consumer, 1)
    assert (message.topic, message.queue_id, message.queue_offset) == ("orders", 0, 0)
    assert (message.tag, message.keys, message.message_id) == ("A", ("k1", "k2"), "u1")
    assert message.properties == {"region": "eu"}
    assert message.json() == {"n": "ä"}
    assert message.text() == '{"n": "ä"}'


def test_a_waiting_poll_is_answered_when_a_message_comes(served: Served) -> None:
    """`poll` waits in the service instead of polling it."""
    with Consumer("orders", url=served.url) as consumer:
        assert consumer.poll(0.1) == []
        timer = threading.Timer(0.3, lambda: served.put(b"late", queue_id=2))
        timer.start()
        began = time.monotonic()
        got = consumer.poll(10)
        timer.join()
    assert [message.body for message in got] == [b"late"]
    assert time.monotonic() - began < 5


def test_start_latest_skips_existing_messages(served: Served) -> None:
    """Messages from before the first poll are skipped."""
    served.put(b"old")
    with Consumer("orders", url=served.url, start="latest") as consumer:
        assert consumer.poll(0.1) == []
        served.put(b"new")
        assert [message.body for message in take(consumer, 1)] == [b"new"]


def test_a_seek_to_a_time_finds_the_first_message_at_or_after_it(served: Served) -> None:
    """The first message that was stored at or after it comes next."""
    at = [
        served.store.append("orders", b"%d" % i, at_ms=1_700_000_000_000 + 1000 * i).store_timestamp for i in range(5)
    ]
    served.store.publish()
    with Consumer(queues=[Q0], url=served.url) as consumer:
        consumer.seek(Q0, datetime.datetime.fromtimestamp(at[3] / 1000, datetime.UTC))
        assert [message.body for message in take(consumer, 2)] == [b"3", b"4"]
        consumer.seek_all("earliest")
        assert take(consumer, 1)[0].body == b"0"
        consumer.seek(Q0, 2)
        assert consumer.position(Q0) == 2
        assert take(consumer, 1)[0].body == b"2"
        assert consumer.position(Q0) == 3
        assert consumer.lag() == {Q0: 2}


def test_a_paused_queue_hands_out_nothing(served: Served) -> None:
    """It continues when it is resumed; other queues are not affected."""
    served.put(b"a", b"b")
    served.put(b"c", queue_id=1)
    with Consumer(queues=[Q0, Q1], url=served.url) as consumer:
        consumer.pause(Q0)
        assert [message.body for message in take(consumer, 3, timeout_s=0.5)] == [b"c"]
        consumer.resume(Q0)
        assert [message.body for message in take(consumer, 2)] == [b"a", b"b"]


def test_tags_are_filtered_by_the_service_and_properties_by_the_client(served: Served) -> None:
    """Positions pass the skipped messages."""
    served.put(b"1", TAGS="A", region="eu")
    served.put(b"2", TAGS="B", region="eu")
    served.put(b"3", TAGS="A", region="us")
    served.put(b"4", TAGS="C")
    with Consumer(queues=[Q0], url=served.url, tag=["A", "B"], where={"region": "eu"}) as consumer:
        assert [message.body for message in take(consumer, 4, timeout_s=1)] == [b"1", b"2"]
        assert consumer.position(Q0) == 4
    with Consumer(queues=[Q0], url=served.url, where=lambda message: message.queue_offset % 2 == 1) as consumer:
        assert [message.body for message in take(consumer, 4, timeout_s=1)] == [b"2", b"4"]


def test_inner_batches_are_unwrapped_from_any_offset(served: Served) -> None:
    """No message is below the sought offset, as a member that committed within a batch expects."""
    served.store.topic("batches", batch=True)
    served.store.append_batch("batches", [(b"%d" % i, {"TAGS": "T"}, i) for i in range(6)])
    served.store.publish()
    queue = TopicQueue("batches", 0)
    with Consumer(queues=[queue], url=served.url) as consumer:
        consumer.seek(queue, 4)
        got = take(consumer, 2)
    assert [(message.queue_offset, message.body, message.tag, message.flag) for message in got] == [
        (4, b"4", "T", 4),
        (5, b"5", "T", 5),
    ]


def test_tables_hold_the_same_messages(served: Served) -> None:
    """`poll_table` continues where `poll` stopped, and the other way round."""
    served.put(*(b"%d" % i for i in range(10)), KEYS="k")
    with Consumer(queues=[Q0], url=served.url, max_messages=4) as consumer:
        first = take(consumer, 3)
        table = consumer.poll_table(10)
        assert table is not None
        rest = take(consumer, 10 - 3 - table.num_rows)
    assert [message.body for message in first] == [b"0", b"1", b"2"]
    assert table.column("queue_offset").to_pylist() == [3, 4, 5, 6]
    assert table.column("body").to_pylist() == [b"3", b"4", b"5", b"6"]
    assert table.column("topic").to_pylist() == ["orders"] * 4
    assert table.column("queue_id").to_pylist() == [0] * 4
    assert [message.body for message in rest] == [b"7", b"8", b"9"]


def test_an_out_of_range_offset_raises_or_is_reset(served: Served) -> None:
    """Nothing is skipped silently unless the consumer was configured to."""
    served.put(b"a", b"b")
    with Consumer(queues=[Q0], url=served.url) as consumer:
        consumer.seek(Q0, 1_000)
        with pytest.raises(OffsetOutOfRangeError) as told:
            consumer.poll(5)
        assert told.value.facts["max_offset"] == 2
    with Consumer(queues=[Q0], url=served.url, out_of_range="earliest") as consumer:
        consumer.seek(Q0, 1_000)
        assert [message.body for message in take(consumer, 2)] == [b"a", b"b"]


def test_an_unknown_topic_is_reported_immediately(served: Served) -> None:
    """There is no endless empty poll."""
    with Consumer("nowhere", url=served.url) as consumer, pytest.raises(TopicNotFoundError):
        consumer.poll(1)


def test_an_unreachable_service_is_reported_immediately() -> None:
    """A consumer that never reached its service does not wait for it."""
    with Consumer(queues=[Q0], url="http://127.0.0.1:9") as consumer, pytest.raises(UnavailableError):
        consumer.poll(30)


def test_pull_reads_at_any_offset_without_moving_the_position(served: Served) -> None:
    """It returns one typed page; the consumer's own position stays."""
    served.put(b"a", b"b", b"c")
    with Consumer(queues=[Q0], url=served.url) as consumer:
        page = consumer.pull("orders", 0, 1, max_messages=1)
        assert (page.status, page.next_offset, [message.body for message in page.messages]) == ("FOUND", 2, [b"b"])
        assert take(consumer, 1)[0].body == b"a"


def test_a_consumer_accepts_either_topics_or_queues() -> None:
    """Both, or neither, is an error."""
    with pytest.raises(ValueError, match="one of the two"):
        Consumer()
    with pytest.raises(ValueError, match="one of the two"):
        Consumer("orders", queues=[Q0])


def test_expired_messages_raise_offset_too_small(served: Served) -> None:
    """Retention has removed the next messages."""
    served.put(*(bytes(2_000) for _ in range(60)))
    first_file = min((served.store.root / "commitlog").iterdir())
    with Consumer(queues=[Q0], url=served.url, max_messages=1) as consumer:
        first_file.unlink()
        consumer.seek(Q0, 0)
        with pytest.raises(OffsetTooSmallError):
            take(consumer, 1)
