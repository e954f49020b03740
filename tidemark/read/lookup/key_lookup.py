"""Lookup of messages by key or unique key (docs/format.md §14): hashes from the index, text from the records.

By default the time window is exactly the requested one, results are in the order of the log, and paging is stable. The
index contains the keys of records: a key of one message inside an inner batch is found only if the batch itself has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import Fault
from tidemark.format.index_file import find_entries, key_hash, oldest_entries
from tidemark.format.message import MessageArray
from tidemark.format.properties import KEYS, UNIQ_KEY, decode_properties, split_keys
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.lookup.record_lookup import has_unit
from tidemark.read.pull import PulledPart
from tidemark.read.records import Records, Skipped, read_records
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark

_BROKER_LIMIT, _BROKER_ROUNDS = 64, 3
_FOR_EVER_MS = (1 << 63) - 1
_SIZE_FIELD = 4
_DAMAGE = (Fault.BODY_CRC.name, Fault.PROPERTY_CRC.name)  # with other faults there is no record of this index entry


@dataclass(frozen=True)
class KeyQuery:
    """Parameters of a lookup. Times are store times, both inclusive."""

    topic: str
    key: str
    unique: bool = False  # key is a UNIQ_KEY
    from_ms: int = 0
    to_ms: int = _FOR_EVER_MS
    limit: int = 32  # messages
    after: int = -1  # physical offset of the last record of the previous page
    max_candidates: int = 10_000  # most records read for one page
    max_bytes: int = 4 << 20  # most stored bytes read; the first record is read regardless of its size


@dataclass
class KeyAnswer:
    """One page. after: start of the next page; None if there is none."""

    parts: list[PulledPart]
    skipped: list[Skipped]
    after: int | None


def find_by_key(store: StoreReader, index: IndexReader, watermark: Watermark, query: KeyQuery) -> KeyAnswer:
    """Return visible messages of a topic with the key, in the order of the log.

    A page holds whole records, so an inner batch can exceed the limit.
    """
    answer = KeyAnswer([], [], None)
    after = max(query.after, _least_offset(store, query) - 1)
    looked_at = found = 0
    left_bytes = query.max_bytes
    while True:
        hits, more = _candidates(index, watermark, query, after)
        if len(hits):
            ends = np.cumsum(np.maximum(_sizes(store, hits), 0))
            fitting = max(int((ends <= left_bytes).sum()), 1)
            hits, more = hits[:fitting], more or fitting < len(hits)
            left_bytes -= int(ends[fitting - 1])
            part = _load(store, watermark, query, hits, answer)
            kept = part.messages
            if len(kept) and found + len(kept) >= query.limit:
                last = int(kept["record"][min(query.limit - found, len(kept)) - 1])
                kept = kept[kept["record"] <= last]
                hits_end = int(part.records.rows["physical_offset"][last])
                more = more or hits_end < int(hits[-1])
                after = hits_end
            else:
                after = int(hits[-1])
            if len(kept):
                answer.parts.append(PulledPart(part.records, kept, part.chosen))
                found += len(kept)
            looked_at += len(hits)
        if not more or found >= query.limit or looked_at >= query.max_candidates or left_bytes <= 0:
            answer.after = after if more else None
            return answer


def _least_offset(store: StoreReader, query: KeyQuery) -> int:
    """Return the least physical offset of an answer: the index keeps keys of expired records and deleted topics."""
    return max(store.log_min, store.dead_end(query.topic))


def _candidates(
    index: IndexReader, watermark: Watermark, query: KeyQuery, after: int
) -> tuple[NDArray[np.int64], bool]:
    """Return the next physical offsets with the key's hash, and whether there are more."""
    hashed = key_hash(query.topic, query.key)
    hits = np.empty(0, np.int64)
    room = min(max(query.limit, 1), query.max_candidates)
    for table in index.tables():
        found, more = oldest_entries(
            table.slots,
            table.entries,
            table.header,
            key_hash=hashed,
            after=after,
            below=watermark.physical_offset,
            limit=room + 1,
            least_ms=query.from_ms,
        )
        hits = np.unique(np.concatenate((hits, found)))
        if more or len(hits) > room:
            return hits[:room], True
    return hits, False


def _load(
    store: StoreReader, watermark: Watermark, query: KeyQuery, hits: NDArray[np.int64], answer: KeyAnswer
) -> PulledPart:
    """Return the messages of the records at *hits* that match the query."""
    records = read_sized(store, watermark, hits)
    answer.skipped += [skip for skip in records.skipped(np.full(len(records.rows), -1)) if skip.reason in _DAMAGE]
    messages = records.messages()
    keep = np.zeros(len(messages), np.bool_)
    for i in range(len(messages)):
        keep[i] = _is_wanted(records, messages, i, query) and (
            not store.paths.is_attached or has_unit(store, watermark, records, int(messages["record"][i]))
        )
    kept = messages[keep]
    return PulledPart(records, kept, records.right)


def read_sized(store: StoreReader, watermark: Watermark, physical_offsets: NDArray[np.int64]) -> Records:
    """Read records of any topic at *physical_offsets* (ascending), with the sizes in their heads; visible ones only."""
    sizes = _sizes(store, physical_offsets)
    whole = (sizes > 0) & (physical_offsets + sizes <= watermark.physical_offset)
    return read_records(store.log, physical_offsets[whole], sizes[whole])


def _sizes(store: StoreReader, physical_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the size field of each record, in bytes."""
    heads = [store.log.read(int(physical_offset), _SIZE_FIELD) for physical_offset in physical_offsets]
    return np.array([int.from_bytes(head, "big", signed=True) for head in heads], np.int64)


def _is_wanted(records: Records, messages: MessageArray, i: int, query: KeyQuery) -> bool:
    """Return True if topic and key match by text and the store time is within the bounds."""
    row = records.rows[int(messages["record"][i])]
    if not query.from_ms <= int(messages["store_timestamp"][i]) <= query.to_ms:
        return False
    if _text(records, int(row["topic_at"]), int(row["topic_length"])) != query.topic:
        return False
    if _carries_key(_properties(records, messages[i]), query):
        return True
    return bool(messages["inner"][i]) and query.unique and _carries_key(_properties(records, row), query)


def _carries_key(properties: dict[str, str], query: KeyQuery) -> bool:
    if query.unique:
        return properties.get(UNIQ_KEY) == query.key
    return query.key in split_keys(properties.get(KEYS, ""))


def _properties(records: Records, row: np.void) -> dict[str, str]:
    at = int(row["properties_at"])
    return decode_properties(records.buffer.data[at : at + int(row["properties_length"])])


def _text(records: Records, at: int, length: int) -> str:
    return records.buffer[at : at + length].tobytes().decode("utf-8", "replace")


def find_by_key_as_broker(store: StoreReader, index: IndexReader, watermark: Watermark, query: KeyQuery) -> KeyAnswer:
    """Return the answer of a broker: at most 64 hashes, newest first, and the matching messages (format.md §14)."""
    answer = KeyAnswer([], [], None)
    end_ms = query.to_ms
    for _ in range(_BROKER_ROUNDS):
        hits = np.array(sorted(set(_newest(index, query, end_ms))), np.int64)
        live = hits[(hits >= _least_offset(store, query)) & (hits < watermark.physical_offset)]
        if len(live):
            part = _load(store, watermark, query, live, answer)
            answer.parts = [part] if len(part.messages) else []
            break
        if not len(hits):
            break
    return answer


def _newest(index: IndexReader, query: KeyQuery, end_ms: int) -> Iterator[int]:
    limit = min(query.limit, _BROKER_LIMIT)
    hashed = key_hash(query.topic, query.key)
    for table in reversed(index.tables()):
        header = table.header
        begin, end = header.begin_timestamp, header.end_timestamp
        covers = query.from_ms < begin and end_ms > end
        if covers or begin <= query.from_ms <= end or begin <= end_ms <= end:
            found = find_entries(
                table.slots, table.entries, header, key_hash=hashed, begin_ms=query.from_ms, end_ms=end_ms, limit=limit
            )
            yield from found
            limit -= len(found)
        if begin < query.from_ms or limit <= 0:
            return
