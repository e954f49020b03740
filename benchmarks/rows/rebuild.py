"""Rebuild: builds all queue files and the key index again from a log, as `tidemark store rebuild` does.

The verb runs the pipeline's tasks once, without Spark; its start and end, which do not depend on the log's size, have a
row of their own. `pipeline --once`, which starts Spark, is measured on a store without old files.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.benchmark import Benchmark
from benchmarks.indexing import Indexing, index_once
from benchmarks.producers import Load
from benchmarks.report import Line, Plot, PlotKind, Result, Row
from benchmarks.stores import LARGE_BATCH, append_log, batches_for, passing_store
from tidemark.cli.store.rebuild_report import report
from tidemark.index.scan.log_range import RANGE_SIZE_BYTES

LOG_BYTES = 6e9
_BODY_BYTES = 1024
_SIZES = (0.25, 1.0)  # sizes of the log; the rows are from the last one
_TOPIC = "bench"


def _measure(folder: Path, scale: float) -> Result:
    rebuilt: dict[str, list[Indexing]] = {"tidemark store rebuild": [], "pipeline --once": []}
    with passing_store(folder / "rebuild") as data:
        for size, before in zip(_SIZES, (0.0, *_SIZES), strict=False):
            log_bytes = LOG_BYTES * scale * (size - before)
            batches = batches_for(log_bytes, messages=LARGE_BATCH, body_bytes=_BODY_BYTES)
            append_log(data, Load(_TOPIC, LARGE_BATCH, _BODY_BYTES, batches, unique_keys=True))
            once = index_once(data)
            if not before:  # with an existing index it would only build the new part of the log
                rebuilt["pipeline --once"].append(once)
            rebuilt["tidemark store rebuild"].append(_rebuild(data))
        rows = [*_rows(rebuilt["tidemark store rebuild"][-1]), *_on_spark(data)]
    with passing_store(folder / "rebuild-keys") as data:
        batches = batches_for(LOG_BYTES * scale * _SIZES[0], messages=LARGE_BATCH, body_bytes=_BODY_BYTES)
        append_log(data, Load(_TOPIC, LARGE_BATCH, _BODY_BYTES, batches, keyed=True, scattered=True))
        index_once(data)
        rows.append(_with_random_keys(_rebuild(data)))
    return Result(rows, [_growth(rebuilt)])


def _rebuild(data: Path) -> Indexing:
    return index_once(data, "tidemark.cli.main", "store", "rebuild", str(data.absolute()))


def _with_random_keys(rebuild: Indexing) -> Row:
    note = f"{rebuild.end_offset / 1e9:.2f} GB of {_BODY_BYTES:,} B messages with UNIQ_KEY and a random key"
    return Row("rebuild_random_keys", "rebuild: each message has a random key, too", _rate(rebuild), "MB/s", "", note)


def _on_spark(data: Path) -> list[Row]:
    """Measure the verb on Spark, with a task each for queues and index: alone, and after a scan in ranges."""
    rows = []
    for key, what, settings in (
        ("rebuild_spark", "each task reads the log", {}),
        (
            "rebuild_spark_ranges",
            "log scanned in ranges first",
            {"TIDEMARK_SCAN_RANGE_SIZE_BYTES": str(RANGE_SIZE_BYTES)},
        ),
    ):
        index_once(data, "tidemark.cli.main", "store", "rebuild", str(data), "--master", "local[2]", settings=settings)
        reported = report((data / "logs" / "rebuild.log").read_text().splitlines())
        note = f"{what}; {reported['bytes'] / 1e9:.2f} GB, without the start of Spark and its workers"
        rows.append(Row(key, "rebuild on Spark, local[2]", reported["bytes_per_s"] / 1e6, "MB/s", "≥ 1000", note))
    return rows


def _rows(rebuild: Indexing) -> list[Row]:
    log = f"{rebuild.end_offset / 1e9:.2f} GB of {_BODY_BYTES:,} B messages with UNIQ_KEY"
    start_s = rebuild.total_s - rebuild.durable_s
    return [
        Row(
            "rebuild",
            "rebuild of queues and key index",
            _rate(rebuild),
            "MB/s",
            "≥ 6 × RocketMQ",
            f"{log}, until synced",
        ),
        Row(
            "rebuild_start_s",
            "rebuild: start of Python, and end",
            start_s,
            "s",
            "",
            "everything except the build",
        ),
        Row("rebuild_total_s", "rebuild: from exec to exit", rebuild.total_s, "s", "", "tidemark store rebuild"),
    ]


def _rate(indexing: Indexing) -> float:
    return indexing.bytes_built / 1e6 / indexing.durable_s


def _growth(rebuilt: dict[str, list[Indexing]]) -> Plot:
    lines = {
        name: Line([one.end_offset / 1e9 for one in points], [one.total_s for one in points])
        for name, points in rebuilt.items()
    }
    return Plot("rebuild: growth with the log", "GB of log", "s, from exec to exit", PlotKind.GROWTH, lines)


_KEYS = (
    "rebuild",
    "rebuild_start_s",
    "rebuild_total_s",
    "rebuild_spark",
    "rebuild_spark_ranges",
    "rebuild_random_keys",
)
BENCHMARKS = (Benchmark("rebuild", _KEYS, _measure),)
