"""The model's measured constants, each with its unit, its meaning, and the part that measures it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import orjson

PATH = Path(__file__).with_name("constants.json")


def _constant(unit: str, meaning: str, part: str) -> Any:
    """Return the field of a constant. part: the part of `python -m benchmarks.scale measure` that measures it."""
    return field(metadata={"unit": unit, "meaning": meaning, "part": part})


@dataclass(frozen=True)
class Constants:
    """The constants of one core and one disk of the measured machine. Processor times are user and system time."""

    writer_s_a_batch: float = _constant("s", "writer: processor time of a batch", "writer")
    writer_s_a_message: float = _constant("s", "writer: of a message in it", "writer")
    writer_s_a_byte: float = _constant("s", "writer: of a byte of its records", "writer")
    writer_s_an_inner_message: float = _constant("s", "writer: of a message in a BatchCQ topic's batch", "writer")

    walk_s_a_record: float = _constant("s", "a walk over the log without CRC: of a record", "pipeline")
    walk_s_a_byte: float = _constant("s", "the same: of a byte", "pipeline")
    queues_s_a_record: float = _constant("s", "queue files, walk and CRC: of a record", "pipeline")
    queues_s_a_byte: float = _constant("s", "the same: of a byte", "pipeline")
    index_s_a_key: float = _constant("s", "key index: of an entry", "pipeline")

    query_s_a_request: float = _constant("s", "query service: of a small pull", "query")
    query_s_a_byte: float = _constant("s", "query service: of a byte pulled as records", "query")
    query_s_a_json_message: float = _constant("s", "query service: of a small message pulled as JSON", "query")
    lookup_s: float = _constant("s", "a lookup by key in one index file, in memory", "lookup")
    lookup_s_a_file: float = _constant("s", "each further index file", "lookup")

    visible_s: float = _constant("s", "append to visible, sync, p50 at 200 messages a second", "visible")
    fdatasync_s: float = _constant("s", "fdatasync of 4 KiB, p50", "disk")
    disk_write_bytes_a_s: float = _constant("B/s", "disk: written in order, synced each 8 MiB", "disk")
    disk_read_bytes_a_s: float = _constant("B/s", "disk: read in order, not in memory", "disk")
    disk_read_s: float = _constant("s", "disk: 4 KiB anywhere, not in memory, p50", "disk")

    writer_base_bytes: float = _constant("B", "writer: memory of its own", "queues")
    writer_bytes_a_queue: float = _constant("B", "writer: memory for a queue", "queues")
    worker_base_bytes: float = _constant("B", "following worker: memory of its own", "queues")
    worker_bytes_a_queue: float = _constant("B", "following worker: memory for a queue", "queues")
    spark_bytes: float = _constant("B", "Spark's driver, its JVM and the other workers", "queues")
    query_base_bytes: float = _constant("B", "query service: memory of its own", "queues")
    query_bytes_a_queue: float = _constant("B", "query service: memory for a queue", "queues")
    writer_base_files: float = _constant("files", "writer: open without a segment of the log", "queues")
    worker_base_files: float = _constant("files", "following worker: open without queues and segments", "queues")
    query_base_files: float = _constant("files", "query service: open without queues and segments", "queues")
    start_s: float = _constant("s", "start of the three services to the first pull", "queues")
    start_s_a_queue: float = _constant("s", "the same: for each queue", "queues")
    start_visible_s: float = _constant("s", "start to the first new message visible: Spark is up", "queues")
    rebuild_start_s: float = _constant("s", "`tidemark store rebuild`: start and end, without building", "rebuild")


class Check(NamedTuple):
    """A prediction and a measurement of a quantity that is not a constant. by: how it was measured."""

    what: str
    predicted: float
    measured: float
    unit: str
    by: str


class Figure(NamedTuple):
    """A measured figure of several pairs."""

    what: str
    value: float
    unit: str


class Measured(NamedTuple):
    """The complete result of a measurement. machine: facts by name."""

    machine: dict[str, str]
    constants: Constants
    checks: list[Check]
    pairs: list[Figure]


def save(measured: Measured, path: Path = PATH) -> None:
    """Write *measured* as JSON, each constant with its unit."""
    units = {one.name: one.metadata["unit"] for one in fields(Constants)}
    constants = {name: {"value": value, "unit": units[name]} for name, value in asdict(measured.constants).items()}
    content = {
        "machine": measured.machine,
        "constants": constants,
        "checks": [check._asdict() for check in measured.checks],
        "pairs": [figure._asdict() for figure in measured.pairs],
    }
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def load(path: Path = PATH) -> Measured:
    """Read the result that `save` wrote. Raises ValueError for other names or units of constants."""
    content: dict[str, Any] = orjson.loads(path.read_bytes())
    units = {one.name: one.metadata["unit"] for one in fields(Constants)}
    if {name: one["unit"] for name, one in content["constants"].items()} != units:
        raise ValueError(f"{path} has other constants than this version: run `make scale-measure`")
    return Measured(
        content["machine"],
        Constants(**{name: one["value"] for name, one in content["constants"].items()}),
        [Check(**check) for check in content["checks"]],
        [Figure(**figure) for figure in content["pairs"]],
    )
