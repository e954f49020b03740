"""Measures the writer's cost of a batch, a message and a byte: its processor time over batches of different shapes."""

from __future__ import annotations

from pathlib import Path

import psutil

from benchmarks.processes import cpu_s
from benchmarks.producers import PRODUCERS, Load, append
from benchmarks.scale.cost_fit import fit_costs
from benchmarks.scale.measure.repeat import committed_bytes
from benchmarks.stack import running
from benchmarks.stores import passing_store
from tidemark.client import BATCH_QUEUE, Producer
from tidemark.local.local_stack import WRITER

_TOPIC = "bench"
_SHAPES = (  # plain ones repeat the same bytes, so that the producers are not the bottleneck
    Load(_TOPIC, 1, 100, 6000),
    Load(_TOPIC, 100, 100, 3000),
    Load(_TOPIC, 1000, 100, 500),
    Load(_TOPIC, 100, 10_240, 250),
)
_INNER = Load(_TOPIC, 1000, 100, 500)


def measure(folder: Path) -> dict[str, float]:
    """Return the constants of the writer."""
    amounts, seconds = [], []
    for load in _SHAPES:
        batches, messages, log_bytes, cpu = run(folder / "writer", load)
        amounts.append((batches, messages, log_bytes))
        seconds.append(cpu)
    a_batch, a_message, a_byte = fit_costs(amounts, seconds)
    batches, messages, log_bytes, cpu = run(folder / "writer", _INNER, batch_queue=True)
    return {
        "writer_s_a_batch": a_batch,
        "writer_s_a_message": a_message,
        "writer_s_a_byte": a_byte,
        "writer_s_an_inner_message": max(0.0, cpu - batches * a_batch - log_bytes * a_byte) / messages,
    }


def run(data: Path, load: Load, *, batch_queue: bool = False) -> tuple[float, float, float, float]:
    """Send *load* from four producers; return batches, messages, log bytes, and the writer's processor seconds."""
    with passing_store(data), running(data, WRITER) as stack:
        with Producer(stack.writer_address) as producer:
            producer.topics.create(load.topic, queues=PRODUCERS, attributes=BATCH_QUEUE if batch_queue else None)
            producer.send_packed_async(load.topic, next(load.make(1, 0)), queue_id=0).result()  # loads the loops
        writer = psutil.Process(stack.services[WRITER].pid)
        log_before, cpu_before = committed_bytes(data), cpu_s(writer)
        append(stack.writer_address, load)
        cpu, log_bytes = cpu_s(writer) - cpu_before, committed_bytes(data) - log_before
    batches = PRODUCERS * (load.batches + load.warm_up)
    return float(batches), float(batches * load.messages), float(log_bytes), cpu
