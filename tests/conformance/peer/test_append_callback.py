"""RocketMQ's AppendCallbackTest: ten messages into a file with too little room, and with enough."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.builders import MAGIC_BLANK
from tests.conformance.peer.message_store import MessageStore
from tests.integration.writer.harness import log_bytes
from tidemark.format.message_id import decode_offset_message_id, encode_offset_message_id
from tidemark.format.properties import decode_properties
from tidemark.v1 import commit_log_pb2 as pb

pytestmark = pytest.mark.conformance

FILE_SIZE, MAX_BLANK = 4096, 1000
V4: dict[str, Any] = {}
V6: dict[str, Any] = {"writer_listen": "[::1]:0", "advertised_address": "[1050::5:600:300c:326b]:10911"}
SIZES = pytest.mark.parametrize(("hosts", "size", "id_length"), [(V4, 114, 32), (V6, 138, 56)], ids=["IPv4", "IPv6"])


def put_ten(store: MessageStore, **fields: int) -> pb.AppendBatchResponse:
    return store.put("test-topic", *[(b"body", {"TAGS": "abc"})] * 10, **fields)


def message_ids(answer: pb.AppendBatchResponse) -> list[str]:
    """Return the answer's ids, as clients make them of the host and the positions."""
    places = struct.unpack(f">{len(answer.physical_offsets) // 8}q", answer.physical_offsets)
    return [encode_offset_message_id(answer.store_host, place) for place in places]


@SIZES
def test_ac1_ac2_a_batch_without_room_writes_only_a_blank_record(
    tmp_path: Path, hosts: dict[str, Any], size: int, id_length: int
) -> None:
    """With 1000 bytes left: 8 bytes of blank that cover all 1000, the rest unchanged, the batch whole in the next file.

    Its queue offsets do not depend on the file, its ids are those of its position.
    """
    with MessageStore(tmp_path, log_file_size=FILE_SIZE, **hosts) as store:
        filler = FILE_SIZE - MAX_BLANK - (91 + len("filler")) - (24 if hosts else 0)
        assert store.put("filler", (bytes(filler), {})).end_physical_offset == FILE_SIZE - MAX_BLANK
        answer = put_ten(store)
        tail = log_bytes(tmp_path)[0][FILE_SIZE - MAX_BLANK :]
        assert tail == struct.pack(">ii", MAX_BLANK, MAGIC_BLANK) + bytes(MAX_BLANK - 8)
        assert (answer.physical_offset, answer.queue_offset) == (FILE_SIZE, 0)
        assert answer.end_physical_offset == FILE_SIZE + 10 * size
        ids = message_ids(answer)
        assert {len(one) for one in ids} == {id_length}
        assert [decode_offset_message_id(one).physical_offset for one in ids] == [
            FILE_SIZE + size * i for i in range(10)
        ]


@SIZES
def test_ac3_ac4_ac5_a_batch_with_room_is_stored_and_decoded_unchanged(
    tmp_path: Path, hosts: dict[str, Any], size: int, id_length: int
) -> None:
    """It is stored at 0 with the bytes of the formula, ten ids, one store time, and consecutive queue offsets."""
    with MessageStore(tmp_path, log_file_size=10_240, **hosts) as store:
        answer = put_ten(store, born_timestamp_ms=1_700_000_000_000)
        assert answer.status == pb.PUT_STATUS_PUT_OK
        assert (answer.physical_offset, answer.queue_offset, answer.message_count) == (0, 0, 10)
        assert answer.end_physical_offset == 10 * size
        ids = message_ids(answer)
        assert (len(set(ids)), {len(one) for one in ids}) == (10, {id_length})
        records = store.records()
        assert [record.queue_offset for record in records] == list(range(10))
        assert {record.store_timestamp for record in records} == {answer.store_timestamp_ms}
        born_address = b"\x7f\0\0\1" if not hosts else bytes(15) + b"\1"
        for record in records:
            assert (record.topic, record.body) == (b"test-topic", b"body")
            assert decode_properties(record.properties) == {"TAGS": "abc"}
            assert record.born_host[:-4] == born_address
            assert record.born_timestamp == 1_700_000_000_000
