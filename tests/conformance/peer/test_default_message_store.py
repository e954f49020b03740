"""RocketMQ's DefaultMessageStoreTest: put, lookup, search by time, limits, damage."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.peer.message_store import FOUND, MessageStore, numbered, put_status, record_count, rows_of
from tests.query_server import serve_query
from tidemark.client import Message, Producer
from tidemark.errors import MessageNotYetVisibleError, MessageSizeExceededError, StoreLockedError
from tidemark.index.ledger import read_ledger
from tidemark.read.file_run import FileRun
from tidemark.read.lookup.offset_by_time import store_time
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

pytestmark = pytest.mark.conformance

FILE_SIZE = 10 << 20
MAX_BODY = 4 << 20


def open_store(root: Path, **settings: Any) -> MessageStore:
    return MessageStore(root, log_file_size=FILE_SIZE, units_a_file=10 << 10, **settings)


def put_timed(store: MessageStore, count: int) -> list[pb.AppendBatchResponse]:
    """Put *count* messages, about 10 ms apart."""
    answers = []
    for number in range(count):
        answers.append(store.put("t", (b"body%d" % number, {})))
        time.sleep(0.01)
    return answers


def test_dms1_the_same_store_cannot_be_started_twice(tmp_path: Path) -> None:
    """The second start fails with the lock."""
    with open_store(tmp_path) as store:
        with pytest.raises(StoreLockedError), open_store(tmp_path):
            pass
        assert store.put("t", (b"x", {})).queue_offset == 0


def test_dms2_messages_of_both_kinds_of_hosts_are_read_by_queue_offset(tmp_path: Path) -> None:
    """There are ten with IPv4 hosts and ten with IPv6 hosts in one queue."""
    with open_store(tmp_path) as store:
        store.put("t", *numbered(10))
    hosts = {"writer_listen": "[::1]:0", "advertised_address": "[1050::5:600:300c:326b]:10911"}
    with open_store(tmp_path, **hosts) as store:
        store.put("t", *numbered(10, start=10))
        store.dispatch()
        for offset in range(20):
            (row,) = rows_of(store.get_message("t", offset, 1))
            assert (row["queue_offset"], row["body"]) == (offset, f"body{offset}")
            assert row["store_host"].startswith("192.168.7.65" if offset < 10 else "[1050::5:600:300c:326b]")


def test_dms3_a_message_is_found_by_physical_offset(tmp_path: Path) -> None:
    """First and last record are found; at the log's end there is nothing."""
    with open_store(tmp_path) as store:
        answers = [store.put("t", message) for message in numbered(10)]
        store.dispatch()
        assert [row["body"] for row in store.look(0)] == ["body0"]
        assert [row["body"] for row in store.look(answers[-1].physical_offset)] == ["body9"]
        with pytest.raises(MessageNotYetVisibleError):
            store.look(answers[-1].end_physical_offset)


def test_dms4_dms5_a_store_time_gives_the_offset_of_its_message(tmp_path: Path) -> None:
    """Each message's own time, the same less 2 ms, and less 20 s give that one, that one, and the first."""
    with open_store(tmp_path) as store:
        answers = put_timed(store, 10)
        store.dispatch()
        for number, answer in enumerate(answers):
            for earlier in (0, 2):
                offset = store.offset_in_queue_by_time("t", answer.store_timestamp_ms - earlier)
                unit = store.unit("t", offset)
                assert offset == number
                assert unit.physical_offset == answer.physical_offset
                assert unit.size == answer.end_physical_offset - answer.physical_offset
            assert store.offset_in_queue_by_time("t", answer.store_timestamp_ms - 20_000) == 0


def test_dms6_a_time_lookup_in_an_empty_queue_gives_0(tmp_path: Path) -> None:
    """A queue without messages gives 0 and no time; an unknown topic is 404 here, while RocketMQ returns 0."""
    with open_store(tmp_path) as store:
        store.create_topic("empty")
        store.dispatch()
        with serve_query(tmp_path, index_slots=100, index_entries=1000) as client:
            answer = client.get("/v1/topics/empty/queues/0/offset", params={"time": 1}).json()
            assert (answer["offset"], answer["store_timestamp_ms"]) == (0, None)
            for path in ("/v1/topics/nowhere/queues/0/offset", "/v1/topics/empty/queues/1/offset"):
                assert client.get(path, params={"time": 1}).status_code == 404
            assert client.get("/v1/topics/empty/queues/0/messages", params={"offset": -1}).status_code == 422


def test_dms7_the_store_time_of_each_unit_is_that_of_its_put(tmp_path: Path) -> None:
    """Positions without a record, past the log's end or negative, have no time."""
    with open_store(tmp_path) as store:
        answers = put_timed(store, 10)
        store.dispatch()
        for number, answer in enumerate(answers):
            assert store.unit("t", number).store_timestamp == answer.store_timestamp_ms
    log = FileRun(tmp_path / "commitlog")
    assert store_time(log, answers[-1].end_physical_offset) == -1
    assert store_time(log, -10) == -1


def test_dms8_too_long_properties_use_no_queue_offset(tmp_path: Path) -> None:
    """A value of 32,768 characters is refused, the next offset stays 0, and the next message gets it."""
    with open_store(tmp_path) as store:
        store.create_topic("t")
        refusal = store.refused_spelled_out("t", pb.Message(body=b"x", properties={"a": "v" * 32_768}))
        assert put_status(refusal) == "PROPERTIES_SIZE_EXCEEDED"
        assert store.queue_next_offset("t") == 0
        assert store.put("t", (b"x", {})).status == pb.PUT_STATUS_PUT_OK
        assert store.queue_next_offset("t") == 1


def test_dms9_undispatched_messages_have_offsets_and_are_invisible(tmp_path: Path) -> None:
    """Three are dispatched, two more put: 3 may be read, the next message gets 5."""
    with open_store(tmp_path) as store:
        store.put("t", *numbered(3))
        store.dispatch()
        store.put("t", *numbered(2))
        assert store.bounds("t").max_offset == 3
        assert store.queue_next_offset("t") == 5
        store.dispatch()
        assert store.bounds("t").max_offset == 5


def test_dms10_a_pull_returns_the_requested_number_of_messages(tmp_path: Path) -> None:
    """Of 32 messages 32, 20 and 10 are requested."""
    with open_store(tmp_path) as store:
        store.put("t", *numbered(32))
        store.dispatch()
        for limit in (32, 20, 10):
            assert record_count(store.get_message("t", 0, limit)) == limit


def test_dms11_a_restart_changes_no_bound(tmp_path: Path) -> None:
    """After 100 messages and a clean stop the log's end, the queue's end and its next offset stay."""
    with open_store(tmp_path) as store:
        store.put("t", *numbered(100))
        store.dispatch()
        end = store.max_physical_offset
    with open_store(tmp_path) as store:
        assert store.max_physical_offset == end
        store.dispatch()
        assert (store.bounds("t").max_offset, store.queue_next_offset("t")) == (100, 100)


def damaged_store(root: Path, *, abort: bool) -> tuple[int, int]:
    """Stop after 100 messages; zero 16 bytes of the last record, from its topic's length on.

    Return its position and end.
    """
    with open_store(root) as store:
        answers = [store.put("t", message) for message in numbered(100)]
    place, end = answers[-1].physical_offset, answers[-1].end_physical_offset
    with (root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(place + 88 + len(b"body99"))
        file.write(bytes(16))
    paths = StorePaths(root)
    paths.abort.unlink(missing_ok=True)
    if abort:
        paths.abort.write_text("1")
    return place, end


def confirm(paths: StorePaths, offset: int) -> None:
    """Write the confirm offset to the disk, as a crash before the last one was durable leaves it."""
    checkpoint = Checkpoint.open_to_write(paths.checkpoint, DiskStorage())
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, offset)
    checkpoint.flush()
    checkpoint.close()


ABORT = pytest.mark.parametrize("abort", [False, True], ids=["clean", "abort file"])


@ABORT
def test_dms12_dms13_a_damaged_end_above_the_durable_floor_is_cut(tmp_path: Path, abort: bool) -> None:
    """The log ends at the damaged record's start, the queue before it; 100 more puts work."""
    place, _ = damaged_store(tmp_path, abort=abort)
    confirm(StorePaths(tmp_path), place)
    for name in ("queue_offsets", "queue_offsets.copy"):
        (StorePaths(tmp_path).writer / name).unlink()
    with open_store(tmp_path) as store:
        assert store.max_physical_offset == place
        store.dispatch()
        assert (store.bounds("t").max_offset, store.queue_next_offset("t")) == (99, 99)
        for number, message in enumerate(numbered(100)):
            assert store.put("t", message).queue_offset == 99 + number
        store.dispatch()
        assert store.bounds("t").max_offset == 199
        assert read_ledger(StorePaths(tmp_path).indexer) == []


@ABORT
def test_dms12_dms13_damage_below_the_durable_floor_is_reported_and_never_cut(tmp_path: Path, abort: bool) -> None:
    """The confirm offset covers the same bytes: the ledger names the record, and numbering continues after it."""
    place, end = damaged_store(tmp_path, abort=abort)
    with open_store(tmp_path) as store:
        assert store.max_physical_offset == end
        assert store.put("t", (b"after", {})).queue_offset == 100
        store.dispatch()
        (entry,) = read_ledger(StorePaths(tmp_path).indexer)
        assert (entry["physical_offset"], entry["size"]) == (place, end - place)
        assert store.bounds("t").max_offset == 101
        with serve_query(tmp_path, index_slots=100, index_entries=1000) as client:
            page = client.get("/v1/topics/t/queues/0/messages", params={"offset": 97}).json()
            assert [message["queue_offset"] for message in page["messages"]] == [97, 98, 100]
            told = client.get("/v1/corruptions").json()["corruptions"]
            assert [entry["physical_offset"] for entry in told] == [place]


def test_dms14_dms15_a_body_above_4_mib_is_illegal(tmp_path: Path) -> None:
    """Alone and three in a batch: one stable reason for both, while RocketMQ raises a text for the batch."""
    with open_store(tmp_path) as store, Producer(store.writer.address) as producer:
        refusal = store.refused("t", (bytes(MAX_BODY + 1), {}))
        assert (refusal.reason, put_status(refusal)) == ("MESSAGE_SIZE_EXCEEDED", "MESSAGE_ILLEGAL")
        for count in (1, 3):
            with pytest.raises(MessageSizeExceededError):
                producer.send_batch([Message("t", bytes(MAX_BODY + 1))] * count)
        assert store.max_physical_offset == 0


def test_dms17_reading_the_log_in_bulk_skips_blank_records(tmp_path: Path) -> None:
    """Ten messages of 2 MiB in files of 10 MiB: ten messages and nothing else, from the files and over ReadLog."""
    body = bytes(range(256)) * 8192
    with open_store(tmp_path) as store:
        for _ in range(10):
            store.put("t", (body, {}))
        assert [record.queue_offset for record in store.records()] == list(range(10))
        parts = list(store.writer.log.ReadLog(pb.ReadLogRequest(physical_offset=0), timeout=60))
    data = b"".join(part.data for part in parts)
    assert data.count(body) == 10
    assert len(list((tmp_path / "commitlog").iterdir())) >= 3


def test_dms18_one_message_above_a_limit_is_refused(tmp_path: Path) -> None:
    """A body of 4 MiB, a topic of 127 characters and 32,767 bytes of properties pass; one more of each does not."""
    topic, entries = "t" * 127, {"a": "v" * (32_767 - 3)}
    with open_store(tmp_path) as store:
        assert store.put(topic, (bytes(MAX_BODY), entries)).status == pb.PUT_STATUS_PUT_OK
        for size in (MAX_BODY + 1, MAX_BODY + (64 << 10)):
            assert put_status(store.refused(topic, (bytes(size), {}))) == "MESSAGE_ILLEGAL"
        longer = pb.Message(body=b"x", properties={"a": "v" * (32_768 - 3)})
        assert put_status(store.refused_spelled_out(topic, longer)) == "PROPERTIES_SIZE_EXCEEDED"
        refusal = store.refused("t" * 32_767, (bytes(MAX_BODY), entries))
        assert put_status(refusal) == "MESSAGE_ILLEGAL"


def test_dms19_the_message_size_limit_is_a_setting(tmp_path: Path) -> None:
    """The limit is ten bytes more, and then ten bytes in all; a setting takes effect at a start, not at run time."""
    with open_store(tmp_path / "more", max_message_size_bytes=MAX_BODY + 10) as store:
        assert store.put("t", (bytes(MAX_BODY + 10), {})).status == pb.PUT_STATUS_PUT_OK
        assert put_status(store.refused("t", (bytes(MAX_BODY + 11), {}))) == "MESSAGE_ILLEGAL"
    with open_store(tmp_path / "less", max_message_size_bytes=10) as store:
        assert put_status(store.refused("t", (bytes(11), {}))) == "MESSAGE_ILLEGAL"
        with Producer(store.writer.address) as producer, pytest.raises(MessageSizeExceededError):
            producer.send("t", bytes(MAX_BODY + 10))
        assert store.put("t", (bytes(10), {})).status == pb.PUT_STATUS_PUT_OK


def test_dms20_deleted_topics_are_unknown(tmp_path: Path) -> None:
    """Of ten topics two are kept: exactly these exist, with their messages."""
    kept = ["topic-3", "topic-5"]
    with open_store(tmp_path) as store:
        for number in range(10):
            store.put(f"topic-{number}", (b"x", {}))
        store.dispatch()
        for number in range(10):
            if f"topic-{number}" not in kept:
                store.writer.topics.DeleteTopic(topics_pb2.DeleteTopicRequest(name=f"topic-{number}"))
        store.put("topic-3", (b"y", {}))
        store.dispatch()
        assert [topic.name for topic in store.writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics] == kept
        assert store.get_message("topic-5", 0, 1).status is FOUND
        assert store.bounds("topic-3").max_offset == 2
        assert sorted(store.reader.topics()) == kept


def test_dms21_folders_exist_after_a_start(tmp_path: Path) -> None:
    """The writer creates the log's, the pipeline the queues'."""
    with open_store(tmp_path) as store:
        assert (tmp_path / "commitlog").is_dir()
        store.dispatch()
        assert (tmp_path / "consumequeue").is_dir()
        assert (tmp_path / "batchconsumequeue").is_dir()
