"""Append → visible and append → acknowledged at a steady rate, over hand-overs of the pipeline's epochs."""

from __future__ import annotations

import datetime
from functools import partial
from pathlib import Path

import orjson

from benchmarks.append_to_visible import measure
from benchmarks.benchmark import Benchmark
from benchmarks.processes import JVM, WORKER, cpu_s, roles_of
from benchmarks.report import PERCENTILES, Result, Row, latency_plots, percentile_rows
from benchmarks.stack import running
from benchmarks.stores import passing_store
from services.indexer.pipeline.config import PipelineSettings
from tidemark.local.local_stack import PIPELINE, QUERY, WRITER, LocalStack

RATE = 200.0
EPOCH_S: float = PipelineSettings.model_fields["epoch_ms"].default / 1000  # the pipeline's default
HAND_OVERS = 11
_WARM_UP_S = 10.0  # as for the other brokers
_LEAST_HAND_OVERS = 10
_CPU_KEYS = {WRITER: "writer", WORKER: "worker", QUERY: "query", JVM: "jvm"}
_TARGETS = {
    "sync": {"p50": "≤ RocketMQ", "p99": "≤ RocketMQ", "p999": "≤ RocketMQ"},
    "async": {"p50": "≤ RocketMQ", "p99": "≤ RocketMQ", "p999": "≤ RocketMQ"},
}


def enough(scale: float) -> float:
    """Return the scale of the duration. From *scale* 0.2 on it has all hand-overs, which the p99 must include."""
    return max(scale, min(1.0, 5 * scale))


def _measure(mode: str, folder: Path, scale: float) -> Result:
    seconds = max(10.0, EPOCH_S * HAND_OVERS * enough(scale))
    warm_up_s = _WARM_UP_S * min(1.0, enough(scale))
    data = folder / f"visible-{mode}"
    with passing_store(data), running(data, flush_mode=mode) as stack:
        measure(stack.writer_address, stack.query_url, count=int(RATE * warm_up_s), rate=RATE)
        before = _cpu_s(stack)
        latencies = measure(stack.writer_address, stack.query_url, count=int(seconds * RATE), rate=RATE)
        after = _cpu_s(stack)
        hand_overs = _epochs(stack, latencies.began, latencies.began + seconds)
    if enough(scale) >= 1 and hand_overs < _LEAST_HAND_OVERS:
        raise RuntimeError(
            f"{hand_overs} hand-overs of epochs in {seconds:.0f} s, and at least {_LEAST_HAND_OVERS} are required"
        )
    note = f"{len(latencies.visible):,} of 1 KiB at {RATE:.0f}/s from when they were due, {hand_overs} hand-overs"
    return Result(
        [
            *percentile_rows(
                f"visible_{mode}", f"append→visible {mode}", latencies.visible, targets=_TARGETS[mode], note=note
            ),
            *percentile_rows(
                f"acknowledged_{mode}", f"append→acknowledged {mode}", latencies.acknowledged, note="the same messages"
            ),
            *_cpu_rows(mode, before, after, len(latencies.visible)),
        ],
        latency_plots(
            f"append {mode}, 200/s of 1 KiB", {"visible": latencies.visible, "acknowledged": latencies.acknowledged}
        ),
    )


def _cpu_s(stack: LocalStack) -> dict[str, float]:
    """Return the processor seconds that each role of *stack* has used."""
    return {role: sum(map(cpu_s, processes)) for role, processes in roles_of(stack).items()}


def _cpu_rows(mode: str, before: dict[str, float], after: dict[str, float], count: int) -> list[Row]:
    """Return the processor time per message of each process. Most of these times add up on a message's way."""
    return [
        Row(
            f"visible_{mode}_cpu_{key}",
            f"append→visible {mode}: processor time a message, {role}",
            (after[role] - before[role]) / count * 1000,
            "ms",
            note="user and system time, including the wake-up of the next process",
        )
        for role, key in _CPU_KEYS.items()
    ]


def _epochs(stack: LocalStack, begin_s: float, end_s: float) -> int:
    """Return the number of epochs with a following task that ended in this time, according to the pipeline's log."""
    count = 0
    for line in stack.services[PIPELINE].log_path.read_text().splitlines():
        if line.startswith("{") and '"epoch_finished"' in line:
            entry = orjson.loads(line)
            ended = datetime.datetime.fromisoformat(entry["timestamp"]).timestamp()
            count += entry["held_s"] > EPOCH_S / 2 and begin_s < ended < end_s
    return count


def _keys(mode: str) -> tuple[str, ...]:
    latencies = [f"{what}_{mode}_{end}" for what in ("visible", "acknowledged") for end in PERCENTILES]
    return (*latencies, *(f"visible_{mode}_cpu_{key}" for key in _CPU_KEYS.values()))


BENCHMARKS = tuple(
    Benchmark(f"visible_{mode}", _keys(mode), partial(_measure, mode), mode) for mode in ("sync", "async")
)
