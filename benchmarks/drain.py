"""Drain: how fast `python -m services.indexer pipeline --once` builds the queues of a 1 GB log.

Seen from outside, in the marks file: from the first mark that moves (the first chunk is built) to the last mark at the
log's end. The first chunk's bytes are left out with its time, and so is the start of Spark.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import numpy as np

from benchmarks.append import PRODUCERS, append_rate
from benchmarks.report import Row
from tidemark.cli.local_stack import WRITER, LocalStack
from tidemark.cli.service import Service, service_module
from tidemark.errors import CorruptStoreError
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths

LOG_BYTES = 1_000_000_000
_BATCH, _BODY_BYTES = 100, 1024
_RECORD_BYTES = _BODY_BYTES + 100
_TIMEOUT_S = 600
_POLL_S = 0.001


def run(folder: Path, scale: float) -> list[Row]:
    """One drain of a log of 1 GB times *scale*."""
    data = folder / "drain"
    batches = max(100, int(LOG_BYTES * scale / (_BATCH * _RECORD_BYTES * PRODUCERS)))
    with LocalStack(data, environment={"TIDEMARK_FLUSH_MODE": "async"}, services=(WRITER,)) as stack:
        append_rate(stack.writer_address, _BATCH, _BODY_BYTES, batches)
    environment = {"TIDEMARK_STORE_ROOT": str(data.absolute())}
    before = time.perf_counter()
    drain = Service(
        "pipeline --once", [service_module("indexer"), "pipeline", "--once"], environment, data / "logs" / "drain.log"
    )
    try:
        trail = _watch(drain, StorePaths(data).marks)
    finally:
        status = drain.stop(30)
    if status != 0:
        raise RuntimeError("\n".join([f"the drain ended with exit status {status}", *drain.last_lines()]))
    return _rows(trail, time.perf_counter() - before)


def _watch(drain: Service, path: Path) -> list[tuple[float, int, int]]:
    """(seconds, least mark, greatest mark) whenever they changed, until the drain has ended."""
    trail: list[tuple[float, int, int]] = []
    deadline = time.monotonic() + _TIMEOUT_S
    marks: Marks | None = None
    while drain.exit_status is None and time.monotonic() < deadline:
        if marks is None:
            with contextlib.suppress(FileNotFoundError, CorruptStoreError):
                marks = Marks.open_read_only(path)
        elif marks.shards:
            visible = [marks.visible(shard) for shard in range(marks.shards)]
            if not trail or trail[-1][1:] != (min(visible), max(visible)):
                trail.append((time.perf_counter(), min(visible), max(visible)))
        time.sleep(_POLL_S)
    if marks is not None:
        marks.close()
    return trail


def _rows(trail: list[tuple[float, int, int]], total_s: float) -> list[Row]:
    times, least, greatest = (np.array(column) for column in zip(*trail, strict=True))
    end = int(least.max())
    first = int(np.argmax(greatest > 0))
    last = int(np.argmax(least == end))
    seconds = float(times[last] - times[first])
    built = end - int(greatest[first])
    note = f"{end / 1e6:,.0f} MB, {_BODY_BYTES} B bodies; first mark to last mark {seconds:.2f} s"
    return [
        Row("drain of a log", built / 1e6 / seconds, "MB/s", "≥ 500", note),
        Row("drain, with the start of Python and Spark", total_s, "s", "", "from exec to exit"),
    ]
