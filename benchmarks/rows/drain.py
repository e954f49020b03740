"""Drain: the rate at which the pipeline, run once, builds the queues of a log of 1 GB whose messages have no keys."""

from __future__ import annotations

from pathlib import Path

from benchmarks.benchmark import Benchmark
from benchmarks.indexing import index_once
from benchmarks.producers import Load
from benchmarks.report import Result, Row
from benchmarks.stores import append_log, batches_for, passing_store

LOG_BYTES = 1e9
_BATCH, _BODY_BYTES = 100, 1024


def _measure(folder: Path, scale: float) -> Result:
    with passing_store(folder / "drain") as data:
        batches = batches_for(LOG_BYTES * scale, messages=_BATCH, body_bytes=_BODY_BYTES)
        append_log(data, Load("bench", _BATCH, _BODY_BYTES, batches))
        seen = index_once(data)
    note = f"{seen.end_offset / 1e6:,.0f} MB, {_BODY_BYTES:,} B bodies; first mark to last mark {seen.build_s:.2f} s"
    rate = seen.bytes_built / 1e6 / seen.build_s
    return Result(
        [
            Row("drain", "drain of a log", rate, "MB/s", "≥ 500", note),
            Row(
                "drain_total_s", "drain, with the start of Python and Spark", seen.total_s, "s", "", "from exec to exit"
            ),
        ],
        [],
    )


BENCHMARKS = (Benchmark("drain", ("drain", "drain_total_s"), _measure, calibration=("memcpy", "crc")),)
