"""format("tidemark"): reading a whole topic as a DataFrame, and the time of a stream's trigger."""

from __future__ import annotations

from pathlib import Path

from benchmarks.benchmark import Benchmark
from benchmarks.producers import PRODUCERS, Load
from benchmarks.report import Result, Row
from benchmarks.spark_run import MESSAGES, TRIGGER_MESSAGES, TRIGGERS, spark_run
from benchmarks.stack import running
from benchmarks.stores import LARGE_BATCH, shared_store
from tidemark.local.local_stack import QUERY

_TOPIC = "bench"
_BODY_BYTES = 1024
_FLOOR_NOTE = "the same plan and columns, but each task returns its first batch again and again"
_AS_KAFKAS = "topic string, queue_id int, queue_offset long, message_id string, store_timestamp timestamp, body binary"


def _store(folder: Path, messages: int) -> Path:
    batches = max(1, messages // (LARGE_BATCH * PRODUCERS))
    return shared_store(folder / f"spark-{messages}", Load(_TOPIC, LARGE_BATCH, _BODY_BYTES, batches))


def _read(folder: Path, scale: float) -> Result:
    data = _store(folder, int(MESSAGES * scale))
    files = spark_run("tidemark", {"path": str(data), "subscribe": _TOPIC})
    few = spark_run("tidemark", {"path": str(data), "subscribe": _TOPIC}, columns=_AS_KAFKAS)
    floor = spark_run("tidemark_floor", {"path": str(data), "subscribe": _TOPIC})
    few_floor = spark_run("tidemark_floor", {"path": str(data), "subscribe": _TOPIC}, columns=_AS_KAFKAS)
    with running(data, QUERY) as stack:
        service = spark_run("tidemark", {"url": stack.query_url, "subscribe": _TOPIC})
    name = 'format("tidemark"), batch read of 1 KiB'
    note = "local[2], all columns, to nowhere, second run of a session"
    few_note = "the same with the columns that Kafka's source has: place, id, time and body"
    return Result(
        [
            Row("spark_read", f"{name}, from files", _rate(files), "msg/s", "≥ 2 × Spark's Kafka source", note),
            Row(
                "spark_read_columns", f"{name}, from files", _rate(few), "msg/s", "≥ 2 × Spark's Kafka source", few_note
            ),
            Row("spark_read_floor", f"{name}, from memory", _rate(floor), "msg/s", "", _FLOOR_NOTE),
            Row("spark_read_columns_floor", f"{name}, from memory", _rate(few_floor), "msg/s", "", _FLOOR_NOTE),
            Row("spark_read_service", f"{name}, from the query service", _rate(service), "msg/s", "", note),
        ],
        [],
    )


def _rate(answer: dict[str, float]) -> float:
    return answer["messages"] / answer["seconds"]


def _trigger(folder: Path, scale: float) -> Result:
    triggers = max(TRIGGERS // 2, int(TRIGGERS * scale))
    data = _store(folder, triggers * TRIGGER_MESSAGES)
    options = {
        "path": str(data),
        "subscribe": _TOPIC,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(TRIGGER_MESSAGES),
    }
    found = spark_run("tidemark", options, triggers=triggers)
    note = f"{found['triggers']:.0f} triggers of {TRIGGER_MESSAGES:,} messages, to nowhere, checkpoint in files"
    name = 'format("tidemark"), trigger of a stream, p50'
    return Result([Row("spark_trigger_p50", name, found["trigger_p50_ms"], "ms", "≤ Spark's Kafka source", note)], [])


_READS = ("spark_read", "spark_read_columns", "spark_read_floor", "spark_read_columns_floor", "spark_read_service")
BENCHMARKS = (
    Benchmark("spark_read", _READS, _read, when_named=True),
    Benchmark("spark_trigger", ("spark_trigger_p50",), _trigger, when_named=True),
)
