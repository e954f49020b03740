"""Every record of every golden log: decoded and encoded again to the same bytes, CRC right, blank records in place."""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import plain_check
from tests.conformance.format.golden import STORES, walk_log
from tests.conftest import GOLDEN
from tidemark.format.dispatch_request import REQUEST_FIELDS, Outcome
from tidemark.format.host import decode_host
from tidemark.format.properties import decode_properties
from tidemark.format.record import decode_record, encode_record

pytestmark = pytest.mark.conformance

GoldenStore = Callable[[str], Path]
RECORDS = {"mixed/store": 2414}  # as the golden data's readme counts them
ADDED_ON_THE_WAY = {"MIN_OFFSET", "MAX_OFFSET", "CLUSTER"}  # by broker and client; not in the store


@pytest.mark.parametrize("name", STORES)
def test_every_record_encodes_to_the_same_bytes(golden_store: GoldenStore, name: str) -> None:
    """Nothing is lost or changed, and the stored CRC is zlib's."""
    count = 0
    for file in walk_log(golden_store(name)):
        for row in file.result.requests:
            at = int(row["physical_offset"]) - file.start
            data = file.buffer[at : at + int(row["message_size"])].tobytes()
            record = decode_record(data)
            assert encode_record(record) == data
            assert record.body_crc == zlib.crc32(record.body) & 0x7FFFFFFF
            assert record.physical_offset == row["physical_offset"]
            count += 1
    assert count == RECORDS.get(name, count) > 0


@pytest.mark.parametrize("name", STORES)
def test_every_full_file_ends_with_a_blank_record(golden_store: GoldenStore, name: str) -> None:
    """Files before the last one with records stop at a blank record, followed only by zero bytes."""
    files = list(walk_log(golden_store(name)))
    used = [file for file in files if file.result.records]
    assert [file.result.outcome for file in used[:-1]] == [Outcome.BLANK] * (len(used) - 1)
    assert used[-1].result.outcome is Outcome.BAD
    assert files[: len(used)] == used
    assert not any(file.buffer.any() for file in files[len(used) :])


@pytest.mark.parametrize("name", STORES)
def test_rows_of_the_walk_equal_the_plain_twin(golden_store: GoldenStore, name: str) -> None:
    """The compiled walk and the plain one agree on real logs, in one shard and in three."""
    for file in walk_log(golden_store(name)):
        data = file.buffer.tobytes()
        twin = plain_check.walk(data, base_offset=file.start, file_end=len(data))
        rows = [{field: int(row[field]) for field, _ in REQUEST_FIELDS} for row in file.result.requests]
        assert rows == twin.rows
        assert (file.result.outcome.name, file.result.end_at) == (twin.outcome, twin.end_at)


def expected_messages(name: str) -> list[dict[str, Any]]:
    """Return the messages that the broker's own client read from the store."""
    with lzma.open(GOLDEN / name / "expected.jsonl.xz", "rt") as lines:
        return [entry for entry in map(json.loads, lines) if entry["kind"] == "message"]


@pytest.mark.parametrize(("name", "store"), [("mixed", "store"), ("killed", "store-recovered"), ("expired", "store")])
def test_decoded_records_equal_the_messages_of_the_broker_client(
    golden_store: GoldenStore, name: str, store: str
) -> None:
    """Every field of every single message of a real consumer equals that of the decoded record."""
    root = golden_store(f"{name}/{store}")
    files = {file.start: file for file in walk_log(root)}
    size = next(iter(files.values())).buffer.size
    singles = [entry for entry in expected_messages(name) if not entry["sys_flag"] & 0x80]
    assert singles
    for entry in singles:
        file = files[entry["physical_offset"] // size * size]
        record = decode_record(file.buffer[entry["physical_offset"] - file.start :].tobytes())
        assert record.topic.decode() == entry["topic"]
        for field in ("queue_id", "queue_offset", "flag", "born_timestamp", "store_timestamp", "body_crc"):
            assert getattr(record, field) == entry[field], field
        assert record.reconsume_times == entry["reconsume_times"]
        assert record.prepared_transaction_offset == entry["prepared_transaction_offset"]
        assert record.sys_flag & ~1 == entry["sys_flag"] & ~1
        assert f"/{decode_host(record.born_host)}" == entry["born_host"]
        assert f"/{decode_host(record.store_host)}" == entry["store_host"]
        told = {key: value for key, value in entry["properties"].items() if key not in ADDED_ON_THE_WAY}
        stored = decode_properties(record.properties)
        assert {key: value for key, value in stored.items() if key not in ADDED_ON_THE_WAY} == told
