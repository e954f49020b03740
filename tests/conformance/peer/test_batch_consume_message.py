"""RocketMQ's queue/BatchConsumeMessageTest: inner batches put, dispatched and pulled as its store does.

Log files of 8 KiB, 100 units a ConsumeQueue file, 20 a BatchConsumeQueue file, transfer limits of 1 MiB and 1024.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.peer.message_store import FOUND, MessageStore, record_count, rows_of
from tests.query_server import serve_query
from tidemark.format.properties import decode_properties
from tidemark.read.pull import PullResult, PullStatus
from tidemark.read.pull_as_broker import TransferLimits
from tidemark.v1 import commit_log_pb2 as pb

pytestmark = pytest.mark.conformance

LIMITS = TransferLimits(bytes_in_memory=1 << 20, count_in_memory=1024, bytes_on_disk=1 << 20, count_on_disk=1024)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    """Return a store with a simple topic `s` and a batch topic `b` of one queue each."""
    with MessageStore(tmp_path, log_file_size=8192) as running:
        running.create_topic("s")
        running.create_topic("b", batch=True)
        yield running


def put_batches(store: MessageStore, count: int, size: int, body_size: int = 1) -> list[pb.AppendBatchResponse]:
    """Put *count* inner batches of *size* messages."""
    return [store.put("b", *[(b"x" * body_size, {})] * size) for _ in range(count)]


def pulled(store: MessageStore, offset: int, max_messages: int, max_bytes: int = 1 << 20) -> PullResult:
    return store.get_message("b", offset, max_messages, max_bytes=max_bytes, limits=LIMITS)


def test_bcm1_a_message_without_batch_marks_is_stored_in_a_simple_topic(store: MessageStore) -> None:
    """It has neither INNER_NUM nor a flag: PUT_OK."""
    assert store.put("s", (b"x", {})).status == pb.PUT_STATUS_PUT_OK


def test_bcm2_an_incomplete_inner_batch_is_refused(store: MessageStore) -> None:
    """INNER_NUM without the flag, or the flag on a topic of single messages: MESSAGE_ILLEGAL, nothing is stored."""
    for topic in ("s", "b"):
        assert store.refused(topic, (b"x", {}), properties={"INNER_NUM": "1"}).reason == "INNER_BATCH_ILLEGAL"
    assert store.refused("s", (b"x", {}), sys_flag=0x80).reason == "INNER_BATCH_ILLEGAL"
    assert store.max_physical_offset == 0


def test_bcm3_a_batch_topic_accepts_single_messages(store: MessageStore) -> None:
    """A plain one, and one with the flag and no INNER_NUM, each count as one."""
    assert store.put("b", (b"x", {})).status == pb.PUT_STATUS_PUT_OK
    answer = store.put("b", (b"y", {}), sys_flag=0x80)
    assert (answer.status, answer.queue_offset, answer.message_count) == (pb.PUT_STATUS_PUT_OK, 1, 1)


def test_bcm4_each_offset_of_a_batch_is_found(store: MessageStore) -> None:
    """One inner batch of ten has minimum 0, maximum 10."""
    put_batches(store, 1, 10)
    store.dispatch()
    for offset in range(10):
        result = pulled(store, offset, 1)
        assert (result.status, result.bounds.min_offset, result.bounds.max_offset) == (FOUND, 0, 10)


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_bcm5_pulling_one_message_gives_one_whole_batch_each(tmp_path: Path, count: int) -> None:
    """Batches of 2 to 1001 messages (in large enough log files) need as many pulls, and then the end is reached."""
    sizes = [random.Random(5 + i).randint(2, 1001) for i in range(count)]
    with MessageStore(tmp_path, max_in_flight_bytes=64 << 20) as store:
        store.create_topic("b", batch=True)
        for size in sizes:
            store.put("b", *[(b"x", {})] * size)
        store.dispatch()
        offset = pulls = 0
        while (result := pulled(store, offset, 1)).status is FOUND:
            assert record_count(result) == 1
            base = int(decode_record_properties(result)["INNER_BASE"])
            assert (base, base + sizes[pulls]) == (offset, result.next_offset)
            offset, pulls = result.next_offset, pulls + 1
        assert (result.status, pulls, offset) == (PullStatus.OFFSET_OVERFLOW_ONE, count, sum(sizes))


def decode_record_properties(result: PullResult, record: int = 0) -> dict[str, str]:
    """Return the properties of a record of a pull: the batch's own."""
    records = result.parts[0].records
    row = records.rows[record]
    at = int(row["properties_at"])
    return decode_properties(records.buffer.data[at : at + int(row["properties_length"])])


def test_bcm6_an_empty_batch_queue_has_minimum_minus_1(store: MessageStore) -> None:
    """This is a broker's answer; by Tidemark's rules an empty queue is 0 to 0."""
    store.dispatch()
    result = pulled(store, 0, 1)
    assert (result.status, result.bounds.min_offset, result.bounds.max_offset) == (
        PullStatus.NO_MESSAGE_IN_QUEUE,
        -1,
        0,
    )
    bounds = store.bounds("b")
    assert (bounds.min_offset, bounds.max_offset) == (0, 0)


def test_bcm7_a_time_between_two_batches_gives_the_offset_of_the_next(store: MessageStore) -> None:
    """After the 8th of 19 batches and before the 9th: offset 80, also after the queue is dispatched again."""
    put_batches(store, 8, 10)
    time.sleep(0.005)
    between = time.time_ns() // 1_000_000
    time.sleep(0.005)
    put_batches(store, 11, 10)
    for _ in range(2):
        store.dispatch()
        bounds = store.bounds("b")
        assert (bounds.min_offset, bounds.max_offset) == (0, 190)
        assert store.offset_in_queue_by_time("b", between) == 80


def test_bcm8_a_simple_queue_has_the_bounds_and_times_of_its_messages(store: MessageStore) -> None:
    """100 messages: time 0 gives the first, its own time the 51st, a much later one the end; REST and library agree."""
    times = []
    for _ in range(100):
        times.append(store.put("s", (b"x", {})).store_timestamp_ms)
        time.sleep(0.001)
    store.dispatch()
    bounds = store.bounds("s")
    assert (bounds.min_offset, bounds.max_offset) == (0, 100)
    assert store.offset_in_queue_by_time("s", 0) == 0
    assert store.offset_in_queue_by_time("s", times[50]) == times.index(times[50])
    assert store.offset_in_queue_by_time("s", times[50] + (1 << 31) - 1) == 100
    with serve_query(store.root, index_slots=100, index_entries=1000) as client:
        for time_ms in range(times[50] - 100, times[50] + 101, 10):
            answer = client.get(
                "/v1/topics/s/queues/0/offset", params={"time": time_ms, "semantics": "rocketmq"}
            ).json()
            expected = sum(one < time_ms for one in times)
            assert answer["offset"] == store.offset_in_queue_by_time("s", time_ms) == expected


def test_bcm9_a_message_has_its_time_and_physical_offset(store: MessageStore) -> None:
    """The earliest time is message 0's; message 50 has its own time and its put's position."""
    answers = [store.put("s", (b"x", {})) for _ in range(100)]
    store.dispatch()
    unit = store.unit("s", 50)
    assert unit.store_timestamp == answers[50].store_timestamp_ms
    assert unit.physical_offset == answers[50].physical_offset
    assert store.unit("s", 0).store_timestamp == answers[0].store_timestamp_ms
    (row,) = rows_of(store.get_message("s", 50, 1))
    assert row["store_timestamp_ms"] == answers[50].store_timestamp_ms
    assert row["physical_offset"] == answers[50].physical_offset


def test_bcm10_a_batch_queue_has_the_bounds_and_times_of_its_messages(store: MessageStore) -> None:
    """100 batches of ten: 0 to 1000; offset 300 has the time of the 31st record."""
    answers = put_batches(store, 100, 10)
    store.dispatch()
    bounds = store.bounds("b")
    assert (bounds.min_offset, bounds.max_offset) == (0, 1000)
    assert store.unit("b", 300).store_timestamp == answers[30].store_timestamp_ms
    assert store.unit("b", 0).store_timestamp == answers[0].store_timestamp_ms
    assert (store.root / "batchconsumequeue" / "b" / "0").is_dir()
    assert not (store.root / "consumequeue" / "b").exists()


def test_bcm11_a_hundred_messages_are_ten_records(store: MessageStore) -> None:
    """Record i has INNER_BASE 10 i and INNER_NUM 10."""
    put_batches(store, 10, 10)
    store.dispatch()
    result = pulled(store, 0, 100)
    assert record_count(result) == 10
    for record in range(10):
        found = decode_record_properties(result, record)
        assert (found["INNER_BASE"], found["INNER_NUM"]) == (str(10 * record), "10")


def test_bcm12_the_answer_of_a_put_has_first_offset_and_count(store: MessageStore) -> None:
    """There are 200 batches of 20."""
    answers = put_batches(store, 200, 20)
    assert [answer.queue_offset for answer in answers] == list(range(0, 4000, 20))
    assert {answer.message_count for answer in answers} == {20}
    store.dispatch()
    assert store.bounds("b").max_offset == 4000


@pytest.mark.parametrize(("max_messages", "bases"), [(1, [0]), (39, [0]), (60, [0, 20, 40])])
def test_bcm13_bcm14_limits_count_messages_of_whole_records(
    store: MessageStore, max_messages: int, bases: list[int]
) -> None:
    """From offset 5 of batches of 20: as many whole batches as fit, the first one always."""
    put_batches(store, 5, 20)
    store.dispatch()
    result = pulled(store, 5, max_messages)
    assert (result.status, result.message_count) == (FOUND, 20 * len(bases))
    assert result.next_offset == bases[-1] + 20
    assert [int(row["base_offset"]) for row in result.parts[0].records.rows] == bases


@pytest.mark.parametrize(("max_bytes", "records", "next_offset"), [(100, 1, 10), (2048, 1, 10), (4096, 3, 30)])
def test_bcm15_limits_in_bytes_count_whole_records(
    store: MessageStore, max_bytes: int, records: int, next_offset: int
) -> None:
    """The records have about 1.2 KB; the pull starts at offset 5."""
    answers = put_batches(store, 100, 10, body_size=80)
    assert 1100 < answers[0].end_physical_offset - answers[0].physical_offset < 1300
    store.dispatch()
    result = pulled(store, 5, 10_000, max_bytes)
    assert (record_count(result), result.next_offset) == (records, next_offset)
