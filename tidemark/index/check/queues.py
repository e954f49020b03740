"""Checks all queues of a store: passes each its records, and finds queues without records in the log."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tidemark.errors import StoreError
from tidemark.format.dispatch_request import Fault, RequestArray
from tidemark.format.topic_name import LIGHT_QUEUE_PREFIX, is_topic_name
from tidemark.index.check.findings import Note, Reason, Report, Scope, relative
from tidemark.index.check.queue_check import QueueCheck
from tidemark.index.check.seen_files import queue_folders
from tidemark.index.check.verdicts import QueueVerdict
from tidemark.index.dispatch import QueueRun, runs_by_queue
from tidemark.index.log_walk import LogPart
from tidemark.store.originals.tombstones import load_tombstones
from tidemark.store.originals.topics import TopicConfig, load_topics
from tidemark.store.paths import StorePaths

QueueKey = tuple[str, int]


class QueueChecks:
    """Checks of one store's queues. position: physical offset up to which `numbers_at` counts."""

    def __init__(self, paths: StorePaths, scope: Scope, report: Report, *, position: int | None = None) -> None:
        self._paths = paths
        self._scope = scope
        self._report = report
        self._position = position
        self._topics = _topics(paths)
        self._dead_ends = _dead_ends(paths)
        self._with_extension = (paths.root / "consumequeue_ext").is_dir()
        self._queues: dict[QueueKey, QueueCheck | None] = {}
        self._skipped_topics: dict[str, int] = {}
        self.numbers_at: dict[QueueKey, int] = {}  # next queue offset at *position*

    # -- the log's records ----------------------------------------------------------------------------------------

    def take(self, part: LogPart) -> None:
        """Pass the records of *part* to their queues' checks."""
        for run in runs_by_queue(part.buffer, part.requests):
            self._report_faults(run)
            living = self._living(run.topic, run.requests)
            if len(living) == 0:
                continue
            queue = self._queue(run.topic, run.queue_id)
            if queue is not None:
                queue.take(living)
            elif run.topic in self._skipped_topics:
                self._skipped_topics[run.topic] += len(living)
            self._count_numbers(run)

    def _report_faults(self, run: QueueRun) -> None:
        faults = run.requests["fault"]
        for row in run.requests[faults != Fault.NONE] if faults.any() else ():
            fault = Fault(int(row["fault"]))
            what = "the body does" if fault is Fault.BODY_CRC else "the properties do"
            self._report_record(run, row, fault.name, f"{what} not match the CRC")

    def _report_record(self, run: QueueRun, row: RequestArray, reason: str, text: str) -> None:
        self._report.find(
            reason,
            text,
            physical_offset=int(row["physical_offset"]),
            size=int(row["message_size"]),
            topic=run.topic,
            queue_id=run.queue_id,
            queue_offset=int(row["queue_offset"]),
        )

    def _living(self, topic: str, requests: RequestArray) -> RequestArray:
        """Return *requests* without records from before the topic's deletion."""
        dead_end = self._dead_ends.get(topic, 0)
        if requests["physical_offset"][0] >= dead_end:
            return requests
        return requests[requests["physical_offset"] >= dead_end]

    def _count_numbers(self, run: QueueRun) -> None:
        if self._position is None or run.requests["physical_offset"][0] >= self._position:
            return
        counted = run.requests[: np.searchsorted(run.requests["physical_offset"], self._position)]
        key = (run.topic, run.queue_id)
        end = int((counted["base_offset"] + counted["batch_size"]).max())
        self.numbers_at[key] = max(self.numbers_at.get(key, 0), end)

    # -- queues ---------------------------------------------------------------------------------------------------

    def _queue(self, topic: str, queue_id: int) -> QueueCheck | None:
        key = (topic, queue_id)
        if key not in self._queues:
            self._queues[key] = self._open(topic, queue_id)
        return self._queues[key]

    def _open(self, topic: str, queue_id: int) -> QueueCheck | None:
        """Return the queue's check; None if its files cannot be compared, which is reported."""
        if not is_topic_name(topic) or queue_id < 0:
            self._report.find("TOPIC", f"records of an invalid topic or queue: {topic!r} {queue_id}")
            return None
        config = self._topics.get(topic)
        batch = config is not None and config.is_batch
        if config is None and not any((root / topic).is_dir() for root in self._roots):
            self._skipped_topics.setdefault(topic, 0)
            return None
        other = self._paths.queue(topic, queue_id, batch=not batch)
        if other.is_dir() and any(other.iterdir()):
            said, found = ("BatchCQ", "SimpleCQ") if batch else ("SimpleCQ", "BatchCQ")
            text = f"the queue's files are a {found}, but topics.json says {said}"
            path = relative(other, self._paths.root)
            self._report.find(Reason.QUEUE_TYPE, text, path=path, topic=topic, queue_id=queue_id)
            return None
        return self._make(topic, queue_id, batch=batch)

    @property
    def _roots(self) -> tuple[Path, Path]:
        return self._paths.consume_queue, self._paths.batch_consume_queue

    def _make(self, topic: str, queue_id: int, *, batch: bool) -> QueueCheck:
        return QueueCheck(
            self._paths.queue(topic, queue_id, batch=batch),
            topic=topic,
            queue_id=queue_id,
            batch=batch,
            scope=self._scope,
            report=self._report,
            dead_end=self._dead_ends.get(topic, 0),
            with_extension=self._with_extension,
        )

    # -- the end --------------------------------------------------------------------------------------------------

    def finish(self, log_end: int) -> list[QueueVerdict]:
        """Report the findings and return a verdict on each compared queue; its count of findings is not yet set."""
        self._add_queues_without_records()
        verdicts = [queue.finish(log_end) for _, queue in sorted(self._queues.items()) if queue is not None]
        lagging = [verdict.lagging for verdict in verdicts if verdict.lagging]
        if lagging:
            text = f"{len(lagging)} queues lag behind the log by {sum(lagging)} units"
            self._report.note(Note.QUEUES_LAG, text, count=sum(lagging))
        for topic, count in sorted(self._skipped_topics.items()):
            text = f"{count} records of a deleted topic: it is not in topics.json and has no queue"
            self._report.note(Note.TOPIC_GONE, text, topic=topic, count=count)
        return verdicts

    def _add_queues_without_records(self) -> None:
        """Add checks of queues on disk without a record in the log, unless the scope is a range."""
        light = 0
        for root, batch in zip(self._roots, (False, True), strict=True):
            for topic, queue_id, _ in queue_folders(root):
                if topic.startswith(LIGHT_QUEUE_PREFIX):
                    light += 1
                elif (topic, queue_id) not in self._queues and not self._scope.is_range:
                    self._queues[topic, queue_id] = self._make(topic, queue_id, batch=batch)
        if light:
            self._report.note(Note.NOT_CHECKED, f"{light} light queues are not compared with the log", count=light)


def _topics(paths: StorePaths) -> dict[str, TopicConfig]:
    """Return the topics; {} if the file cannot be read, which `check_small_files` reports."""
    try:
        return load_topics(paths.topics)
    except StoreError:
        return {}


def _dead_ends(paths: StorePaths) -> dict[str, int]:
    try:
        return {stone.topic: stone.physical_offset for stone in load_tombstones(paths.tombstones)}
    except StoreError:
        return {}
