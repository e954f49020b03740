"""Measures the cost of a queue for each process: memory, open files and start time with few and with many queues."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from benchmarks.batches import plain_batch
from benchmarks.processes import WORKER, resident_bytes, roles_of
from benchmarks.producers import TIMEOUT_S, require_stored
from benchmarks.rows.start import Started, start_to_serving
from benchmarks.scale.measure.repeat import wait_until_visible
from benchmarks.stack import running
from benchmarks.stores import passing_store
from tidemark.client import Producer, Query
from tidemark.local.local_stack import QUERY, WRITER, LocalStack

FEW, MANY = 16, 1016
_NO_HAND_OVER = {"TIDEMARK_EPOCH_MS": "600000", "TIDEMARK_WARM_UP_MS": "0"}  # none, because a hand-over closes files
_TOPIC = "queues"
_MESSAGES, _BODY_BYTES = 10, 100


@dataclass(frozen=True)
class Sample:
    """The memory and files of a running stack, by role.

    All its queues were written, built and read, and its log has one segment. The following worker, which has the most,
    stands for all workers.
    """

    files: dict[str, int]
    memory: dict[str, float]
    others: float  # memory of all Spark processes except the following worker


def measure(folder: Path) -> dict[str, float]:
    """Return the constants of memory, files and start."""
    (few, started_few), (many, started_many) = (_sample_and_start(folder, count) for count in (FEW, MANY))
    more = MANY - FEW
    found: dict[str, float] = {"spark_bytes": few.others}
    for role, name in ((WRITER, "writer"), (WORKER, "worker"), (QUERY, "query")):
        a_queue = max(0.0, many.memory[role] - few.memory[role]) / more
        found[f"{name}_bytes_a_queue"] = a_queue
        found[f"{name}_base_bytes"] = few.memory[role] - FEW * a_queue
        found[f"{name}_base_files"] = few.files[role] - 1 - (0 if role == WRITER else FEW)
    start_a_queue = max(0.0, started_many.pull_s - started_few.pull_s) / more
    found["start_s_a_queue"] = start_a_queue
    found["start_s"] = started_few.pull_s - FEW * start_a_queue
    found["start_visible_s"] = started_few.visible_s
    return found


def _sample_and_start(folder: Path, queues: int) -> tuple[Sample, Started]:
    with passing_store(folder / f"queues-{queues}") as data:
        return sample(data, queues), start_to_serving(data, _TOPIC)


def sample(data: Path, queues: int) -> Sample:
    """Return the sample of a new store at *data* with this many queues."""
    with running(data, settings=_NO_HAND_OVER) as stack:
        with Producer(stack.writer_address, timeout_s=TIMEOUT_S) as producer:
            producer.topics.create(_TOPIC, queues=queues)
            packed = plain_batch(_MESSAGES, _BODY_BYTES)
            sent = [producer.send_packed_async(_TOPIC, packed, queue_id=number) for number in range(queues)]
            for future in sent:
                require_stored(future.result())
        wait_until_visible(data)
        with Query(stack.query_url) as query:
            pulled = sum(query.pull_records(_TOPIC, number, 0).message_count for number in range(queues))
        if pulled != queues * _MESSAGES:
            raise RuntimeError(f"pulled {pulled} of {queues * _MESSAGES} messages from {queues} queues")
        return _sample(stack)


def _sample(stack: LocalStack) -> Sample:
    files, memory, others = {}, {}, 0.0
    for role, processes in roles_of(stack).items():
        one = max(processes, key=lambda process: len(os.listdir(f"/proc/{process.pid}/fd")))
        files[role] = len(os.listdir(f"/proc/{one.pid}/fd"))
        memory[role] = float(resident_bytes(one.pid))
        if role not in (WRITER, QUERY):
            rest = [process for process in processes if process is not one or role != WORKER]
            others += sum(resident_bytes(process.pid) for process in rest)
    return Sample(files, memory, others)
