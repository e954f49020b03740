"""Pulling with a broker's results (docs/format.md §14): whole inner batches and the broker's limits."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from tidemark.read.file_run import FileRun
from tidemark.read.pull import PulledPart, PullRequest, PullResult, PullStatus, refuse
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.records import read_records

_MIN_FILTER_BYTES = 16_000  # maxFilterMessageSize
_MIN_PULL_BYTES, _MAX_PULL_BYTES = 100, 128 << 20
_MEMORY_RATIO = 40  # accessMessageInMemoryMaxRatio, percent


class TransferLimits(NamedTuple):
    """RocketMQ's maxTransferBytesOnMessageInMemory and related settings.

    memory_bytes: records farther from the log's end count as on disk
    """

    bytes_in_memory: int = 262_144
    count_in_memory: int = 32
    bytes_on_disk: int = 65_536
    count_on_disk: int = 8
    memory_bytes: int = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _MEMORY_RATIO // 100


def pull_as_broker(
    queue: QueueReader,
    log: FileRun,
    bounds: QueueBounds,
    request: PullRequest,
    *,
    log_end: int,
    limits: TransferLimits = TransferLimits(),  # noqa: B008 - an immutable value
) -> PullResult:
    """Return messages of *queue* as getMessage selects them. One call reads records of only one queue file."""
    if queue.is_batch and bounds.max_offset == 0:
        bounds = bounds._replace(min_offset=-1)
    refused = refuse(bounds, request.offset)
    if refused is not None:
        return refused
    result = PullResult(PullStatus.NO_MATCHED_MESSAGE, request.offset, bounds)
    chosen = _choose(queue, log, result, request, log_end, limits)
    if chosen:
        _load(queue, log, result, request, chosen)
    return result


class _Chosen(NamedTuple):
    """A unit whose record is to be read."""

    physical_offset: int
    size: int
    queue_offset: int
    message_count: int


def _first_unit(queue: QueueReader, bounds: QueueBounds, offset: int) -> int | None:
    """Return the unit at which the broker starts (format.md §14): in a batch queue the last one with base ≤ offset."""
    number = queue.locate(offset, bounds.units)
    if queue.is_batch and number < bounds.units.end:
        base = int(queue.run.unit(number)["base_offset"])
        if base > offset:
            number -= 1
    return number if bounds.units.first <= number < bounds.units.end else None


def _choose(
    queue: QueueReader, log: FileRun, result: PullResult, request: PullRequest, log_end: int, limits: TransferLimits
) -> list[_Chosen]:
    """Select units as the getMessage loop does. Sets next_offset, and the status if no unit is selected."""
    number = _first_unit(queue, result.bounds, request.offset)
    if number is None:
        result.status = PullStatus.OFFSET_FOUND_NULL
        result.next_offset = 0 if queue.is_batch else _roll_next_file(queue, request.offset)
        return []
    file_end = number + queue.run.units_a_file - number % queue.run.units_a_file
    unit_size = queue.run.unit_size
    max_filter_bytes = max(_MIN_FILTER_BYTES, request.max_messages * unit_size)
    max_bytes = min(max(request.max_bytes, _MIN_PULL_BYTES), _MAX_PULL_BYTES)
    end = min(file_end, result.bounds.units.end, number + max_filter_bytes // unit_size + 1)
    units = queue.run.read(number, end - number)
    passes = np.ones(len(units), np.bool_)
    if request.tags is not None:
        passes = request.tags.matches_code(queue.tags_codes(units))
    rows = zip(
        units["physical_offset"].tolist(),
        units["message_size"].tolist(),
        queue.first_offsets(number, units).tolist(),
        queue.message_counts(units).tolist(),
        passes.tolist(),
        strict=True,
    )
    log_min = log.known.starts[0] if log.known.starts else 0
    chosen: list[_Chosen] = []
    total_bytes = total_count = 0
    for physical_offset, size, queue_offset, count, passed in rows:
        if (queue_offset - request.offset) * unit_size >= max_filter_bytes or total_bytes >= max_bytes:
            break
        in_memory = log_end - physical_offset <= limits.memory_bytes
        most_bytes = limits.bytes_in_memory if in_memory else limits.bytes_on_disk
        most_count = limits.count_in_memory if in_memory else limits.count_on_disk
        if chosen and (
            total_count + count > request.max_messages
            or total_bytes + size > min(max_bytes, most_bytes)
            or total_count > most_count - 1
        ):
            break
        result.next_offset = max(result.next_offset, queue_offset + count)  # a damaged unit may have any offset
        if not passed:
            continue
        if physical_offset < log_min:
            if not chosen:
                result.status = PullStatus.MESSAGE_WAS_REMOVING
            continue
        chosen.append(_Chosen(physical_offset, size, queue_offset, count))
        total_bytes += size
        total_count += count
    return chosen


def _roll_next_file(queue: QueueReader, offset: int) -> int:
    units = queue.run.units_a_file
    return offset + units - offset % units if units else offset


def _load(queue: QueueReader, log: FileRun, result: PullResult, request: PullRequest, chosen: list[_Chosen]) -> None:
    """Read the selected records and keep the messages that a client would keep."""
    places = np.array(chosen, np.int64)
    records = read_records(
        log,
        places[:, 0].copy(),
        places[:, 1].copy(),
        topic=queue.record_topic,
        queue_id=queue.queue_id,
        numbers=queue.numbers_to_check(places[:, 2]),
    )
    result.skipped = records.skipped(places[:, 2])
    messages = records.messages()
    if len(messages):
        result.status = PullStatus.FOUND
    if request.tags is not None:
        messages = messages[request.tags.matches_text(records.buffer, messages)]
    result.message_count = len(messages)
    result.parts.append(PulledPart(records, messages, records.right))
