"""RocketMQ's BatchSendIT: from a producer's batch to the messages that consumers get and find."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.builders import properties, wire_batch
from tests.conformance.peer.message_store import FOUND, MessageStore, rows_of
from tests.conformance.peer.test_batch_consume_message import LIMITS
from tests.query_server import serve_query
from tidemark.format.message_id import UniqueKeys, encode_offset_message_id
from tidemark.v1 import commit_log_pb2 as pb

pytestmark = pytest.mark.conformance

INDEX = {"index_slots": 100, "index_entries": 1000}


def offset_ids(answer: pb.AppendBatchResponse) -> list[str]:
    places = struct.unpack(f">{len(answer.physical_offsets) // 8}q", answer.physical_offsets)
    return [encode_offset_message_id(answer.store_host, place) for place in places]


def test_bs1_every_message_of_a_batch_has_two_ids(tmp_path: Path) -> None:
    """Each of a hundred is found by its offset id and by its UNIQ_KEY."""
    keys = UniqueKeys().make_many(100)
    with MessageStore(tmp_path) as store:
        answer = store.put("t", *[(b"body%d" % i, {"UNIQ_KEY": key}) for i, key in enumerate(keys)])
        ids = offset_ids(answer)
        assert len(set(ids)) == 100
        store.dispatch()
        with serve_query(tmp_path, **INDEX) as client:
            for number, (offset_id, key) in enumerate(zip(ids, keys, strict=True)):
                (by_id,) = client.get(f"/v1/messages/{offset_id}?body_encoding=utf8").json()["messages"]
                (by_key,) = client.get(f"/v1/topics/t/messages?unique_key={key}&body_encoding=utf8").json()["messages"]
                assert by_id["body"] == by_key["body"] == f"body{number}"
                assert by_id["message_id"] == by_key["message_id"] == key
                assert by_id["offset_msg_id"] == by_key["offset_msg_id"] == offset_id


def test_bs2_a_new_batch_topic_has_empty_queues(tmp_path: Path) -> None:
    """It has eight queues, each from -1 to 0 for a broker, 0 to 0 for Tidemark."""
    with MessageStore(tmp_path) as store:
        store.create_topic("b", batch=True, queues=8)
        store.dispatch()
        for queue_id in range(8):
            bounds = store.get_message("b", 0, 1, queue_id=queue_id).bounds
            assert (bounds.min_offset, bounds.max_offset) == (-1, 0)
        with serve_query(tmp_path, **INDEX) as client:
            queues = client.get("/v1/topics/b").json()["queues"]
        assert [(queue["queue_id"], queue["min_offset"], queue["max_offset"]) for queue in queues] == [
            (queue_id, 0, 0) for queue_id in range(8)
        ]


def put_tens(store: MessageStore, topic: str) -> list[pb.AppendBatchResponse]:
    """Put ten batches of ten messages."""
    return [store.put(topic, *[(b"%d" % (10 * i + j), {}) for j in range(10)]) for i in range(10)]


def test_bs3_bs4_inner_batches_are_sent_and_pulled_end_to_end(tmp_path: Path) -> None:
    """One id each, offset 10 i; a pull from 5 gives a broker's client all hundred, and Tidemark's the requested 95."""
    with MessageStore(tmp_path) as store:
        store.create_topic("b", batch=True)
        answers = put_tens(store, "b")
        assert [answer.queue_offset for answer in answers] == list(range(0, 100, 10))
        assert {len(offset_ids(answer)) for answer in answers} == {1}
        store.dispatch()
        result = store.get_message("b", 5, 100, limits=LIMITS)
        assert (result.status, result.bounds.min_offset, result.bounds.max_offset) == (FOUND, 0, 100)
        rows = rows_of(result)
        assert [(row["queue_offset"], row["body"]) for row in rows] == [(i, str(i)) for i in range(100)]
        for first in range(0, 100, 10):
            shared = [
                (row["born_host"], row["born_timestamp_ms"], row["store_timestamp_ms"]) for row in rows[first:][:10]
            ]
            assert len(set(shared)) == 1
        with serve_query(tmp_path, **INDEX) as client:
            page = client.get("/v1/topics/b/queues/0/messages?offset=5&max_messages=100").json()
        assert [message["queue_offset"] for message in page["messages"]] == list(range(5, 100))


def test_bs5_legacy_batches_are_sent_and_pulled_on_a_simple_topic(tmp_path: Path) -> None:
    """There are ten ids a batch; a pull from 5 gives 95 messages."""
    with MessageStore(tmp_path) as store:
        store.create_topic("s")
        store.dispatch()
        bounds = store.bounds("s")
        assert (bounds.min_offset, bounds.max_offset) == (0, 0)
        assert {len(offset_ids(answer)) for answer in put_tens(store, "s")} == {10}
        store.dispatch()
        rows = rows_of(store.get_message("s", 5, 100, limits=LIMITS))
        assert [row["queue_offset"] for row in rows] == list(range(5, 100))


def test_bs6_a_batch_of_one_keeps_all_properties(tmp_path: Path) -> None:
    """Keys, tag, WAIT, buyer id and flag are compared; both ids find it."""
    key = UniqueKeys().make()
    entries = {"KEYS": "k1 k2", "TAGS": "A", "WAIT": "false", "BUYER_ID": "b1", "UNIQ_KEY": key}
    with MessageStore(tmp_path) as store:
        answer = store.writer.append("t", wire_batch((b"x", properties(entries), 123)))
        store.wait_for_commit()  # the answer to WAIT=false does not wait for the flush
        store.dispatch()
        with serve_query(tmp_path, **INDEX) as client:
            by_id = client.get(f"/v1/messages/{offset_ids(answer)[0]}").json()["messages"]
            by_key = client.get(f"/v1/topics/t/messages?unique_key={key}").json()["messages"]
            by_own_key = client.get("/v1/topics/t/messages?key=k2").json()["messages"]
        for (message,) in (by_id, by_key, by_own_key):
            assert (message["keys"], message["tag"], message["flag"]) == (["k1", "k2"], "A", 123)
            assert message["properties"] == {"WAIT": "false", "BUYER_ID": "b1"}
            assert message["message_id"] == key
