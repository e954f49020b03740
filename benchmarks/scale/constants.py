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

    writer_s_a_batch: float = _constant("s", "writer: processor time per batch", "writer")
    writer_s_a_message: float = _constant("s", "writer: processor time per message of a batch", "writer")
    writer_s_a_byte: float = _constant("s", "writer: processor time per byte of records", "writer")
    writer_s_an_inner_message: float = _constant("s", "writer: the same per message of a BatchCQ batch", "writer")

    walk_s_a_record: float = _constant("s", "walk over the log without CRC: per record", "pipeline")
    walk_s_a_byte: float = _constant("s", "walk over the log without CRC: per byte", "pipeline")
    queues_s_a_record: float = _constant("s", "queue files with walk and CRC: per record", "pipeline")
    queues_s_a_byte: float = _constant("s", "queue files with walk and CRC: per byte", "pipeline")
    index_s_a_key: float = _constant("s", "key index: per entry", "pipeline")

    query_s_a_request: float = _constant("s", "query service: per small pull", "query")
    query_s_a_byte: float = _constant("s", "query service: per byte pulled as records", "query")
    query_s_a_json_message: float = _constant("s", "query service: per small message pulled as JSON", "query")
    lookup_s: float = _constant("s", "lookup by key in one index file, in memory", "lookup")
    lookup_s_a_file: float = _constant("s", "lookup by key: per further index file", "lookup")

    visible_s: float = _constant("s", "append to visible, sync, p50 at 200 messages per second", "visible")
    fdatasync_s: float = _constant("s", "fdatasync of 4 KiB, p50", "disk")
    disk_write_bytes_a_s: float = _constant("B/s", "disk: sequential writes, synced every 8 MiB", "disk")
    disk_read_bytes_a_s: float = _constant("B/s", "disk: sequential reads, not in memory", "disk")
    disk_read_s: float = _constant("s", "disk: random read of 4 KiB, not in memory, p50", "disk")

    writer_base_bytes: float = _constant("B", "writer: base memory", "queues")
    writer_bytes_a_queue: float = _constant("B", "writer: memory per queue", "queues")
    worker_base_bytes: float = _constant("B", "following worker: base memory", "queues")
    worker_bytes_a_queue: float = _constant("B", "following worker: memory per queue", "queues")
    spark_bytes: float = _constant("B", "Spark's driver, its JVM and the other workers", "queues")
    query_base_bytes: float = _constant("B", "query service: base memory", "queues")
    query_bytes_a_queue: float = _constant("B", "query service: memory per queue", "queues")
    writer_base_files: float = _constant("files", "writer: open files without log segments", "queues")
    worker_base_files: float = _constant("files", "following worker: open files without queues and segments", "queues")
    query_base_files: float = _constant("files", "query service: open files without queues and segments", "queues")
    start_s: float = _constant("s", "start of the three services to the first pull", "queues")
    start_s_a_queue: float = _constant("s", "start of the three services: per queue", "queues")
    start_visible_s: float = _constant("s", "start until a first new message is visible, with Spark running", "queues")
    rebuild_start_s: float = _constant("s", "`tidemark store rebuild`: start and end, without the build", "rebuild")


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
