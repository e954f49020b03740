"""Measures a lookup by key in this process, with one index file and with many, all in memory."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.indexing import ONCE, index_once
from benchmarks.producers import PRODUCERS
from benchmarks.scale.measure.pipeline import SMALL
from benchmarks.scale.measure.repeat import forget_built
from tidemark.format.index_file import ENTRIES_A_SLOT
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.lookup.key_lookup import KeyQuery, find_by_key
from tidemark.read.store_reader import StoreReader

_OF_A_QUEUE = SMALL.batches * SMALL.messages
_ENTRIES = 2 * PRODUCERS * _OF_A_QUEUE  # a UNIQ_KEY and a key each
_MANY = 100
_LOOKUPS = 500
_STEP = 7919  # a prime, so that the keys are spread over the index


class _Seen(NamedTuple):
    """One measurement. seconds: median time of a lookup."""

    files: int
    seconds: float


def measure(data: Path) -> dict[str, float]:
    """Return the constants of a lookup in the store of small messages, whose index is built again."""
    one, many = (_look(data, _ENTRIES // files + 2) for files in (1, _MANY))
    if one.files != 1:
        raise RuntimeError(f"expected 1 index file, found {one.files}")
    return {"lookup_s": one.seconds, "lookup_s_a_file": max(0.0, many.seconds - one.seconds) / (many.files - 1)}


def _look(data: Path, entries: int) -> _Seen:
    slots = entries // ENTRIES_A_SLOT
    forget_built(data)
    settings = {"TIDEMARK_INDEX_SLOTS": str(slots), "TIDEMARK_INDEX_ENTRIES": str(entries)}
    index_once(data, *ONCE, "--pipeline", "plain", settings=settings)
    store, index = StoreReader(data), IndexReader(data / "index", slots=slots, entries=entries)
    for _ in range(2):  # the first round loads each page
        times = [_find(store, index, number) for number in range(_LOOKUPS)]
    return _Seen(len(index.tables()), statistics.median(times))


def _find(store: StoreReader, index: IndexReader, number: int) -> float:
    query = KeyQuery(SMALL.topic, f"{number % PRODUCERS}-{number * _STEP % _OF_A_QUEUE}")
    began = time.perf_counter()
    answer = find_by_key(store, index, store.watermark(), query)
    took = time.perf_counter() - began
    if sum(len(part.messages) for part in answer.parts) != 1:
        raise RuntimeError(f"expected exactly one message with key {query.key}")
    return took
