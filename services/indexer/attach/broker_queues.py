"""Finds the records that a broker has dispatched, by the broker's queue files.

One thread of a broker dispatches in the order of the log. So a record has been dispatched if its queue has a unit that
points at it, or if any queue has a unit that points at or after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.topic_name import is_topic_name
from tidemark.index.dispatch import QueueRun, runs_by_queue
from tidemark.read.file_run import FileRun
from tidemark.read.queue_reader import QueueReader
from tidemark.store.originals.topics import TopicsFile
from tidemark.store.paths import StorePaths

_MOST_OPEN = 256  # queues whose files stay open


class BrokerQueues:
    """The queue files of a broker's store, which are only read. log: the broker's CommitLog."""

    def __init__(self, paths: StorePaths, log: FileRun) -> None:
        self._paths = paths
        self._log = log
        self._topics = TopicsFile(paths.topics)
        self._open: dict[tuple[str, int, bool], QueueReader] = {}
        self._next: dict[tuple[str, int, bool], int] = {}  # batch queues: number after the last unit seen

    def first_without_unit(self, buffer: U8Array, requests: RequestArray) -> int | None:
        """Return the physical offset of the first record that has no unit yet; None if all have one.

        A record's unit is at the record's queue offset and has its physical offset and size. A partly written unit does
        not count.

        Args:
            buffer: bytes of the log that *requests* refer to.
        """
        missing: list[int] = []
        for run in runs_by_queue(buffer, requests):
            right = self._have_units(run)
            if not right.all():
                missing.append(int(run.requests["physical_offset"][int(right.argmin())]))
        return min(missing, default=None)

    def _have_units(self, run: QueueRun) -> NDArray[np.bool_]:
        if not is_topic_name(run.topic) or run.queue_id < 0:
            return np.zeros(len(run.requests), np.bool_)
        config = self._topics.topics().get(run.topic)
        queue = self._queue(run.topic, run.queue_id, batch=config is not None and config.is_batch)
        if queue.run.units_a_file == 0:
            queue.run.look()
        return self._have_batch_units(queue, run) if queue.is_batch else self._have_simple_units(queue, run)

    def _queue(self, topic: str, queue_id: int, *, batch: bool) -> QueueReader:
        key = (topic, queue_id, batch)
        found = self._open.get(key)
        if found is None:
            if len(self._open) >= _MOST_OPEN:
                self._open.clear()
                self._next.clear()
            found = self._open[key] = self._reader(topic, queue_id, batch=batch)
        return found

    def _reader(self, topic: str, queue_id: int, *, batch: bool) -> QueueReader:
        folder = self._paths.queue(topic, queue_id, batch=batch)
        return QueueReader(folder, topic=topic, queue_id=queue_id, batch=batch, attached_log=self._log)

    def _have_simple_units(self, queue: QueueReader, run: QueueRun) -> NDArray[np.bool_]:
        """Check units of a simple queue, in which unit n has queue offset n."""
        numbers = run.requests["queue_offset"]
        right = np.zeros(len(numbers), np.bool_)
        for piece in np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(numbers) != 1) + 1):
            first = int(numbers[piece[0]])
            if first >= 0:
                right[piece] = _match(queue, first, run.requests[piece])
        return right

    def _have_batch_units(self, queue: QueueReader, run: QueueRun) -> NDArray[np.bool_]:
        """Check units of a batch queue, in which units are in the order of their records."""
        key = (queue.topic, queue.queue_id, True)
        first = self._next.get(key, -1)
        right = _match(queue, first, run.requests)
        if not right[0]:
            first = queue.run.end_below(int(run.requests["physical_offset"][0]))
            right = _match(queue, first, run.requests)
        self._next[key] = first + (len(right) if right.all() else int(right.argmin()))
        return right

    def greatest_end(self) -> int:
        """Return the end of the last record that any unit points at; 0 without units. Reads every queue."""
        end = 0
        self._log.listing()
        for topic, queue_id, batch in self._all_queues():
            last = self._reader(topic, queue_id, batch=batch).run.last_solid()
            if last is not None:
                unit = last[1][0]
                end = max(end, int(unit["physical_offset"]) + int(unit["message_size"]))
        return end

    def _all_queues(self) -> Iterator[tuple[str, int, bool]]:
        for root, batch in ((self._paths.consume_queue, False), (self._paths.batch_consume_queue, True)):
            for topic in filter(is_topic_name, _names(root)):
                for name in _names(root / topic):
                    if name.isdecimal() and str(int(name)) == name:
                        yield topic, int(name), batch


def _match(queue: QueueReader, first: int, requests: RequestArray) -> NDArray[np.bool_]:
    """Return for each of *requests* whether its unit, counted from number *first*, has its physical offset and size."""
    right = np.zeros(len(requests), np.bool_)
    if first < 0:
        return right
    units = queue.run.read(first, len(requests))
    known = requests[: len(units)]
    right[: len(units)] = (units["physical_offset"] == known["physical_offset"]) & (
        units["message_size"] == known["message_size"]
    )
    if queue.is_batch:
        right[: len(units)] &= units["base_offset"] == known["base_offset"]
    return right


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
