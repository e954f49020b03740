"""RocketMQ's BatchPutMessageTest: a legacy batch with wrapper properties. Log files of 8 KiB."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.peer.message_store import FOUND, MessageStore, numbered, rows_of
from tidemark.v1 import commit_log_pb2 as pb

pytestmark = pytest.mark.conformance

TOPIC = "batch-write-topic"
ENTRIES = {"TAGS": "TAG1", "KEYS": "1700000000000"}
SIZE, SIZE_V6 = 142, 166  # 91 + 5 + 17 + 29; with both hosts IPv6 24 bytes more


def put_batch(store: MessageStore) -> pb.AppendBatchResponse:
    return store.put(TOPIC, *numbered(10, ENTRIES), properties={"extraKey": "extraValue"})


def require_all_found(store: MessageStore) -> None:
    """Require each of the ten, pulled by its queue offset."""
    store.dispatch()
    for offset in range(10):
        result = store.get_message(TOPIC, offset, 1)
        assert result.status is FOUND
        assert [(row["queue_offset"], row["body"]) for row in rows_of(result)] == [(offset, f"body{offset}")]


def test_bpm1_bpm2_record_positions_depend_only_on_their_own_properties(tmp_path: Path) -> None:
    """The batch is stored, and record k starts at k times 142: wrapper properties use no room in it."""
    with MessageStore(tmp_path, log_file_size=8192, units_a_file=205) as store:
        answer = put_batch(store)
        assert (answer.status, answer.message_count) == (pb.PUT_STATUS_PUT_OK, 10)
        store.dispatch()
        for number in range(10):
            (row,) = store.look(SIZE * number)
            assert row["body"] == f"body{number}"
            assert "extraKey" not in row["properties"]
        assert answer.end_physical_offset == 10 * SIZE


def test_bpm3_every_message_is_found_by_its_queue_offset(tmp_path: Path) -> None:
    """The call is getMessage of queue 0 from 0 to 9."""
    with MessageStore(tmp_path, log_file_size=8192, units_a_file=205) as store:
        put_batch(store)
        require_all_found(store)


def test_bpm4_hosts_of_16_address_bytes_make_records_24_bytes_longer(tmp_path: Path) -> None:
    """Born ::1, stored by 1050::5:600:300c:326b: all are found, 166 bytes apart."""
    hosts: dict[str, Any] = {"writer_listen": "[::1]:0", "advertised_address": "[1050::5:600:300c:326b]:10911"}
    with MessageStore(tmp_path, log_file_size=8192, units_a_file=205, **hosts) as store:
        put_batch(store)
        require_all_found(store)
        places = [record.physical_offset for record in store.records()]
        assert {right - left for left, right in itertools.pairwise(places)} == {SIZE_V6}
