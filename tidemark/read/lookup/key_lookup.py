"""Lookup of messages by key or unique key (docs/format.md §14): hashes from the index, text from the records.

By default the time window is exactly the requested one, results are in the order of the log, and paging is stable. The
index contains the keys of records: a key of one message inside an inner batch is found only if the batch itself has it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tidemark.format.dispatch_request import DISPATCH_REQUEST, Fault, fields_of
from tidemark.format.index_file import find_entries, key_hash
from tidemark.format.message import MESSAGE, MessageArray
from tidemark.format.properties import split_keys
from tidemark.read.cached import is_cached_only, require_thread
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.lookup.record_lookup import has_unit
from tidemark.read.pull import PulledPart
from tidemark.read.records import Records, Skipped, read_records, read_small_record
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark

_BROKER_LIMIT, _BROKER_ROUNDS = 64, 3
_FOR_EVER_MS = (1 << 63) - 1
_SIZE_FIELD = 4
_DAMAGE = (Fault.BODY_CRC.name, Fault.PROPERTY_CRC.name)  # with other faults there is no record of this index entry


class KeyQuery(NamedTuple):
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
        if hits:
            records, fitting, read_bytes = _read_fitting(store, watermark, hits, left_bytes)
            hits, more = hits[:fitting], more or fitting < len(hits)
            left_bytes -= read_bytes
            part = _matching(store, watermark, query, records, answer)
            kept = part.messages
            if len(kept) and found + len(kept) >= query.limit:
                last = int(kept["record"][min(query.limit - found, len(kept)) - 1])
                kept = kept[kept["record"] <= last]
                hits_end = int(part.records.rows["physical_offset"][last])
                more = more or hits_end < hits[-1]
                after = hits_end
            else:
                after = hits[-1]
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


def _candidates(index: IndexReader, watermark: Watermark, query: KeyQuery, after: int) -> tuple[list[int], bool]:
    """Return the next physical offsets with the key's hash, ascending, and whether there are more."""
    hashed = key_hash(query.topic, query.key)
    hits: list[int] = []
    room = min(max(query.limit, 1), query.max_candidates)
    if is_cached_only():
        hits = index.find_cached(hashed, after=after, below=watermark.physical_offset, least_ms=query.from_ms)
        return hits[:room], len(hits) > room
    for table in index.tables():
        found, more = table.oldest(
            hashed, after=after, below=watermark.physical_offset, limit=room + 1, least_ms=query.from_ms
        )
        hits = sorted({*hits, *found}) if hits else found
        if more or len(hits) > room:
            return hits[:room], True
    return hits, False


def _read_fitting(
    store: StoreReader, watermark: Watermark, hits: list[int], most_bytes: int
) -> tuple[Records, int, int]:
    """Return the records at the first of *hits*, as many as *most_bytes* allows, at least one; their number and bytes.

    Those that are not visible count, but are not read.
    """
    if len(hits) == 1:
        records = read_small_record(store.log, hits[0], below=watermark.physical_offset)
        if records is not None:
            return records, 1, len(records.buffer)
    sizes = _sizes(store, hits)
    ends = list(accumulate(max(size, 0) for size in sizes))
    fitting = max(bisect_right(ends, most_bytes), 1)
    require_thread(fitting, ends[fitting - 1])
    return _read_whole(store, watermark, hits[:fitting], sizes[:fitting]), fitting, ends[fitting - 1]


def _matching(
    store: StoreReader, watermark: Watermark, query: KeyQuery, records: Records, answer: KeyAnswer
) -> PulledPart:
    """Return the messages of *records* that match the query."""
    if not records.is_sound:
        answer.skipped += [skip for skip in records.skipped(np.full(len(records.rows), -1)) if skip.reason in _DAMAGE]
    messages = records.messages()
    wanted = _wanted(records, messages, query)
    if store.paths.is_attached:
        wanted = [i for i in wanted if has_unit(store, watermark, records, int(messages["record"][i]))]
    return PulledPart(records, messages if len(wanted) == len(messages) else messages[wanted], None)


def _read_whole(store: StoreReader, watermark: Watermark, hits: list[int], sizes: list[int]) -> Records:
    """Read the records at *hits*, ascending, without those that are not visible."""
    places, lengths = np.array(hits, np.int64), np.array(sizes, np.int64)
    if hits and (min(sizes) <= 0 or hits[-1] + sizes[-1] > watermark.physical_offset):
        whole = (lengths > 0) & (places + lengths <= watermark.physical_offset)
        places, lengths = places[whole], lengths[whole]
    return read_records(store.log, places, lengths)


def _sizes(store: StoreReader, physical_offsets: list[int]) -> list[int]:
    """Return the size field of each record, in bytes."""
    heads = [store.log.read(physical_offset, _SIZE_FIELD) for physical_offset in physical_offsets]
    return [int.from_bytes(head, "big", signed=True) for head in heads]


_MESSAGE_FIELDS = fields_of(
    MESSAGE, "record", "store_timestamp", "inner", "keys_at", "keys_length", "unique_key_at", "unique_key_length"
)
_RECORD_FIELDS = fields_of(DISPATCH_REQUEST, "topic_at", "topic_length", "unique_key_at", "unique_key_length")


def _wanted(records: Records, messages: MessageArray, query: KeyQuery) -> list[int]:
    """Return the numbers of the *messages* whose topic and key match by text, with store times within the bounds."""
    if not query.key:
        return []
    view, topic = records.buffer.data, query.topic.encode("utf-8", "surrogatepass")
    rows = list(map(_RECORD_FIELDS, records.rows.tolist()))
    wanted = []

    def text(at: int, length: int) -> str:
        return str(view[at : at + length], "utf-8", "replace")

    for i, fields in enumerate(map(_MESSAGE_FIELDS, messages.tolist())):
        record, store_timestamp, inner, *keys, unique_at, unique_length = fields
        topic_at, topic_length, *outer = rows[record]
        if not query.from_ms <= store_timestamp <= query.to_ms or view[topic_at : topic_at + topic_length] != topic:
            continue
        if not query.unique:
            has_key = query.key in split_keys(text(*keys))
        else:
            has_key = text(unique_at, unique_length) == query.key or bool(inner and text(*outer) == query.key)
        if has_key:
            wanted.append(i)
    return wanted


def find_by_key_as_broker(store: StoreReader, index: IndexReader, watermark: Watermark, query: KeyQuery) -> KeyAnswer:
    """Return the answer of a broker: at most 64 hashes, newest first, and the matching messages (format.md §14)."""
    answer = KeyAnswer([], [], None)
    end_ms = query.to_ms
    for _ in range(_BROKER_ROUNDS):
        hits = sorted(set(_newest(index, query, end_ms)))
        least = _least_offset(store, query)
        live = [physical_offset for physical_offset in hits if least <= physical_offset < watermark.physical_offset]
        if live:
            sizes = _sizes(store, live)
            require_thread(len(live), sum(sizes))
            part = _matching(store, watermark, query, _read_whole(store, watermark, live, sizes), answer)
            answer.parts = [part] if len(part.messages) else []
            break
        if not hits:
            break
    return answer


def _newest(index: IndexReader, query: KeyQuery, end_ms: int) -> Iterator[int]:
    limit = min(query.limit, _BROKER_LIMIT)
    hashed = key_hash(query.topic, query.key)
    for table in reversed(index.tables()):
        table.require_cached(hashed)
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
