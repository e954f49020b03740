"""Records of the log after arbitrary changes by a disk or another program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
from hypothesis import strategies as st

from tests import plain_check
from tests.conformance.format.golden import STORES
from tests.fuzz.golden_logs import rows_of
from tests.fuzz.guarded import GuardedBuffer
from tests.fuzz.mutation import mutated
from tests.fuzz.target import fuzz
from tests.property.strategies import damaged_logs
from tests.property.test_check import as_plain
from tidemark.errors import CorruptStoreError
from tidemark.format import message
from tidemark.format.check import Checker, Crc, find_next_record
from tidemark.format.dispatch_request import Fault, Outcome, U8Array
from tidemark.format.index_file import hash_keys
from tidemark.read.messages.arrow_stream import arrow_stream
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.messages.message_json import message_json
from tidemark.read.messages.message_rows import message_rows
from tidemark.read.pull import PulledPart
from tidemark.read.records import Records

ROOM = GuardedBuffer(1 << 18)
BASE = 4096
Unpack = Callable[[str], Path]


def damaged(data: st.DataObject, golden_store: Unpack) -> tuple[int, bytes]:
    """Draw (base offset, bytes): a broker's records or Tidemark's, some of them changed."""
    row = data.draw(st.sampled_from(rows_of(golden_store, STORES)))
    if data.draw(st.booleans()):
        return row.base_offset, data.draw(mutated(st.just(row.data)))
    return BASE, data.draw(damaged_logs(base_offset=BASE))


@fuzz(few=60, at_once=500, data=st.data(), at_end=st.booleans(), crc=st.sampled_from(Crc), shards=st.integers(1, 3))
def test_a_walk_of_damaged_bytes_accepts_only_whole_records(
    golden_store: Unpack, data: st.DataObject, at_end: bool, crc: Crc, shards: int
) -> None:
    """It equals its plain twin, stops within the bytes, and accepts each accepted record when it is alone."""
    base, raw = damaged(data, golden_store)
    file_end = data.draw(st.none() | st.integers(0, len(raw) + 64))
    buffer = ROOM.lend(raw, at_end=at_end)
    checker = Checker(crc=crc, shards=shards)
    result = checker.check(buffer, base_offset=base, file_end=file_end)
    seen = as_plain(result)
    keys, _, _ = hash_keys(buffer, result.requests)
    twin = plain_check.walk(
        raw,
        base_offset=base,
        file_end=file_end,
        crc=crc.name,
        shard=0,
        shards=shards,
        light=False,
        max_rows=len(raw) // 91 + 1,
    )
    assert seen == twin
    assert 0 <= seen.end_at <= len(raw)
    assert len(keys) <= len(raw)
    accepted = as_plain(checker.check(ROOM.lend(raw[: seen.end_at], at_end=at_end), base_offset=base))
    assert (accepted.rows, accepted.records, accepted.end_at) == (seen.rows, seen.records, seen.end_at)


@fuzz(few=40, at_once=500, data=st.data(), at_end=st.booleans())
def test_the_next_record_after_damage_is_valid(golden_store: Unpack, data: st.DataObject, at_end: bool) -> None:
    """The result of a search after damage begins a record that the walk accepts, or the file's blank record."""
    base, raw = damaged(data, golden_store)
    start = data.draw(st.integers(0, len(raw)))
    found = find_next_record(ROOM.lend(raw, at_end=at_end), base_offset=base, start=start, file_end=len(raw))
    if found is not None:
        assert start <= found < len(raw)
        result = Checker(max_rows=1).check(
            ROOM.lend(raw, at_end=at_end), base_offset=base, start=found, file_end=len(raw)
        )
        is_right_but_for_a_number = (result.outcome, result.fault) == (Outcome.BAD, Fault.NUMBER)
        assert result.records == 1 or result.outcome is Outcome.BLANK or is_right_but_for_a_number


def pulled(buffer: U8Array, base: int, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> PulledPart:
    """Return them as a pull does whose units point at *places*."""
    edges = np.append(places, buffer.size)
    rows = message.check_records(buffer, places=places, physical_offsets=base + places, sizes=np.diff(edges))
    records = Records(buffer, places, rows)
    return PulledPart(records, records.messages(), records.right)


@fuzz(few=40, at_once=300, data=st.data(), at_end=st.booleans(), encoding=st.sampled_from(BodyEncoding))
def test_valid_records_can_be_encoded_in_every_format(
    golden_store: Unpack, data: st.DataObject, at_end: bool, encoding: BodyEncoding
) -> None:
    """Units may point anywhere: valid records become JSON, the same by both writers, and an Arrow stream."""
    base, raw = damaged(data, golden_store)
    cuts = data.draw(st.sets(st.integers(0, max(len(raw) - 1, 0)), max_size=6)) | {0}
    right = [int(row["physical_offset"]) - base for row in plain_rows(raw, base)]
    edges = sorted(cuts) if data.draw(st.booleans()) else right
    if not edges or not raw:
        return
    buffer = ROOM.lend(raw, at_end=at_end)[edges[0] :]
    part = pulled(buffer, base + edges[0], np.array(edges, np.int64) - edges[0])
    rows = message_rows(part, encoding)
    text = b"".join(message_json(part, encoding, terminator=b"\n")).splitlines()
    assert [orjson.loads(line) for line in text] == [orjson.loads(orjson.dumps(row)) for row in rows]
    arrow_stream([part], {})
    message_rows(part, encoding, as_broker=True)


def plain_rows(raw: bytes, base: int) -> list[plain_check.Row]:
    """Return the rows of the plain walk, up to its end."""
    return plain_check.walk(
        raw, base_offset=base, file_end=None, crc="MARKS", shard=0, shards=1, light=False, max_rows=1_000
    ).rows


@fuzz(few=40, at_once=500, data=st.data(), at_end=st.booleans())
def test_record_positions_in_damaged_bytes_ascend_or_are_refused(
    golden_store: Unpack, data: st.DataObject, at_end: bool
) -> None:
    """The positions that a client finds in a pull of stored records are within it, and ascend."""
    _, raw = damaged(data, golden_store)
    try:
        places = message.find_records(ROOM.lend(raw, at_end=at_end)).places.tolist()
    except CorruptStoreError:
        return
    assert places == sorted(set(places))
    assert all(0 <= place <= len(raw) - 91 for place in places)
