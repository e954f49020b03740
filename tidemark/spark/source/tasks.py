"""Task: the ranges that one Spark task reads. Short ranges share a task, and long ones have several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql.datasource import InputPartition

from tidemark.errors import StoreError
from tidemark.spark.source.log import Log
from tidemark.spark.source.ranges import QueueRange, split
from tidemark.spark.source.source_options import SourceOptions


@dataclass(frozen=True)
class Task(InputPartition):
    """Ranges that are read one after the other, in the order of each queue's messages."""

    ranges: tuple[QueueRange, ...]


def in_tasks(ranges: Iterable[QueueRange], options: SourceOptions, log: Log) -> list[Task]:
    """Return *ranges* without empty ones, divided and combined by the options for partitions."""
    if options.min_partitions is not None:
        return [Task((one,)) for one in split(ranges, options.min_partitions)]
    least, most_bytes = options.min_offsets_per_partition, int(options.max_bytes_per_partition)
    parts = [part for one in split(ranges, None) for part in _divided(one, log, least, most_bytes)]
    return _shared(parts, least)


def _divided(whole: QueueRange, log: Log, least: int, most_bytes: int) -> list[QueueRange]:
    """Divide a range with *least* messages or more into parts of at most *most_bytes*, or of one message.

    If the log does not know the sizes, the range stays whole, and its read reports the fault.
    """
    if whole.places is not None or whole.count < least:
        return [whole]
    parts: list[QueueRange] = []
    start = whole.start
    try:
        while start < whole.end:
            end = max(log.end_within(whole.queue, start, whole.end, most_bytes), start + 1)
            parts.append(replace(whole, start=start, end=end))
            start = end
    except StoreError:
        return [whole]
    return parts


def _shared(ranges: Iterable[QueueRange], least: int) -> list[Task]:
    """Give a range with *least* messages its own task, and let shorter ones share tasks of about *least* messages."""
    tasks: list[Task] = []
    short: list[QueueRange] = []
    messages = 0
    for one in ranges:
        if one.wanted >= least:
            tasks.append(Task((one,)))
            continue
        short.append(one)
        messages += one.wanted
        if messages >= least:
            tasks.append(Task(tuple(short)))
            short, messages = [], 0
    return tasks + ([Task(tuple(short))] if short else [])
