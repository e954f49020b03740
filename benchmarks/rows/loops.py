"""The compiled loops that process every message, alone and warm: nanoseconds per message, without a service.

They run on a stretch of log that fits in the cache, so that the figures are the cost of the loops, not of memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.batches import table, unique_batches
from benchmarks.benchmark import Benchmark
from benchmarks.report import Result, Row
from tidemark.client.producer.table_columns import ColumnNames, column_slices
from tidemark.format import index_file, message, wire_batch
from tidemark.format.check import Checker, Crc
from tidemark.format.columns import columns_of
from tidemark.format.dispatch_request import U8Array
from tidemark.format.pack import pack_batches
from tidemark.format.record import HEAD, Magic

_MESSAGES, _BODY_BYTES = 2000, {"1 KiB": 1024, "100 B": 100}
_ROUNDS = 300  # the fastest one counts, because other work can only slow a round down
_TOPIC = np.frombuffer(b"\x05bench", np.uint8)
_LOOPS = {
    "walk": "walk over the log, CRC too",
    "check": "check of records that units point at, with their fields",
    "check_stored": "the same, to hand them on as they are",
    "columns": "numbers of messages as columns",
    "hash_keys": "hashes of keys for the index",
    "pack": "packing columns into wire batches",
    "scan": "the writer's check of a wire batch",
    "encode": "a wire batch written as records",
}


class _Log(NamedTuple):
    """Adjacent records from physical offset 0, and the wire batch from which they were made."""

    wire: U8Array
    records: U8Array


def _make_log(body_bytes: int) -> _Log:
    (packed,) = unique_batches(1, _MESSAGES, body_bytes)
    wire = np.frombuffer(packed, np.uint8)
    out = np.empty(wire.size + _MESSAGES * 256, np.uint8)
    return _Log(wire, out[: _encode(wire, out)])


def _encode(wire: U8Array, out: U8Array) -> int:
    head = np.zeros(1, HEAD)
    head["magic"] = int(Magic.V1)
    positions = np.empty(_MESSAGES, np.int64)
    return wire_batch.encode_records(
        wire, head=head.view(np.uint8), topic=_TOPIC, first_extra=_TOPIC[:0], queue_offset=0, physical_offset=0,
        out=out, positions=positions,
    )  # fmt: skip


def _loops(body_bytes: int) -> dict[str, Callable[[], object]]:
    """Return the measured loops by name."""
    wire, records = _make_log(body_bytes)
    checker = Checker(crc=Crc.MARKS)
    requests = checker.check(records, base_offset=0).requests.copy()
    if len(requests) != _MESSAGES:
        raise RuntimeError(f"the walk found {len(requests)} records instead of {_MESSAGES}")
    places: NDArray[np.int64] = requests["physical_offset"].copy()
    sizes = requests["message_size"].astype(np.int64)
    check = partial(message.check_records, records, places=places, physical_offsets=places, sizes=sizes)
    messages = message.unwrap_records(records, places, check())
    ((_, columns),) = column_slices(table(_MESSAGES, body_bytes), ColumnNames(body="body", unique_key="id"))
    out = np.empty(records.size, np.uint8)
    return {
        "walk": partial(checker.check, records, base_offset=0),
        "check": check,
        "check_stored": partial(check, with_fields=False),
        "columns": partial(columns_of, records, messages, ()),
        "hash_keys": partial(index_file.hash_keys, records, requests),
        "pack": lambda: list(pack_batches(columns, queues=1, max_count=_MESSAGES, max_bytes=1 << 30)),
        "scan": partial(wire_batch.scan, wire),
        "encode": partial(_encode, wire, out),
    }


def _measure(folder: Path, scale: float) -> Result:
    rows = []
    for size, body_bytes in _BODY_BYTES.items():
        for name, loop in _loops(body_bytes).items():
            took_ns = min(_took_ns(loop) for _ in range(max(20, int(_ROUNDS * scale))))
            key = f"loop_{name}_{body_bytes}"
            rows.append(Row(key, f"{_LOOPS[name]}, {size}", took_ns / _MESSAGES, "ns", "", "of a message"))
    return Result(rows, [])


def _took_ns(loop: Callable[[], object]) -> int:
    before = time.perf_counter_ns()
    loop()
    return time.perf_counter_ns() - before


_KEYS = tuple(f"loop_{name}_{body_bytes}" for body_bytes in _BODY_BYTES.values() for name in _LOOPS)
BENCHMARKS = (Benchmark("loops", _KEYS, _measure),)
