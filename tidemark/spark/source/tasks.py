"""Task: the ranges that one Spark task reads. Short ranges share a task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from tidemark.spark.source.ranges import QueueRange, split
from tidemark.spark.source.source_options import SourceOptions


@dataclass(frozen=True)
class Task(InputPartition):
    """Ranges that are read one after the other, in the order of each queue's messages."""

    ranges: tuple[QueueRange, ...]


def in_tasks(ranges: Iterable[QueueRange], options: SourceOptions) -> list[Task]:
    """Return *ranges* without empty ones, divided or combined by minPartitions and minOffsetsPerPartition."""
    if options.min_partitions is not None:
        return [Task((one,)) for one in split(ranges, options.min_partitions)]
    return _shared(split(ranges, None), options.min_offsets_per_partition)


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
