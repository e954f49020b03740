"""Follows a broker's log: walks it, checks that the broker has dispatched each record, and publishes a watermark.

The follower only reads the broker's files. It sends the broker no request, and locks and writes none of its files. It
publishes a watermark and terms in the state folder, as the pipeline does for its own store.
"""

from __future__ import annotations

import time

import numpy as np

from tidemark.format.check import Checker, Crc
from tidemark.format.dispatch_request import RequestArray
from tidemark.index.ledger import Ledger
from tidemark.index.log_walk import LogPart, LogWalk
from tidemark.read.file_run import FileRun
from tidemark.read.records import REMOVED, read_records
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import begin_term, current_term
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

from .broker_queues import BrokerQueues
from .fingerprints import Fingerprints

_LEAST_WINDOW_BYTES, _MOST_WINDOW_BYTES = 64 << 10, 8 << 20  # bytes of the log that are read at once
_CHECK_INTERVAL_S = 1.0
_FIRST_SCAN_S, _LAST_SCAN_S = 0.1, 5.0  # shortest and longest pause before all queues are read
_STUCK_SHARE, _QUIET_SHARE = 10, 100  # the pause is at least this many times the duration of the last such read
_SIZE_FIELD = 4


class Follower:
    """Moves the watermark of an attached store. Its state folder has no other writer.

    Attributes:
        position: below it, everything is dispatched and published.
        floor: below it, everything is dispatched.
    """

    def __init__(self, paths: StorePaths, storage: Storage) -> None:
        self._paths = paths
        self._storage = storage
        self._log = FileRun(paths.commit_log)
        self._queues = BrokerQueues(paths, self._log)
        self._fingerprints = Fingerprints(self._log)
        self._walk: LogWalk | None = None
        self._window = _LEAST_WINDOW_BYTES
        self._checked_at = time.monotonic()
        self._scan_at, self._scan_pause = 0.0, _FIRST_SCAN_S
        self._scan_took = 0.0
        self.damages = 0
        storage.make_folder(paths.indexer)
        self._ledger = Ledger(paths.indexer, 0, storage)
        self._marks = Marks.open_to_write(paths.marks, storage, shards=1, term=current_term(paths.terms).number)
        self.position = self.floor = 0
        self._begin(self._queues.greatest_end())
        self._marks.say_alive()

    def _begin(self, cut: int) -> None:
        """Begin a new term: the log above *cut* may have changed. Publish everything that is dispatched now."""
        term = begin_term(self._paths.terms, cut, self._storage)
        self._marks.adopt_term(0, term.number, end_offset=cut)
        starts = self._log.listing().starts
        self.floor = max(self._queues.greatest_end(), starts[0] if starts else 0)
        self._publish(self.floor)
        self._marks.publish_durable(0, self.position)

    @property
    def term(self) -> int:
        """Number of the current term, which changes when the log was truncated."""
        return self._marks.shard_term(0)

    def close(self) -> None:
        """Close the marks and the log. The published watermark stays valid for readers."""
        self._marks.publish_durable(0, self.position)
        self._marks.say_gone()
        self._marks.close()
        if self._walk is not None:
            self._walk.close()

    # -- polling ----------------------------------------------------------------------------------------------------

    def poll(self) -> bool:
        """Read the log once; return True if the watermark has moved."""
        now = time.monotonic()
        if now - self._checked_at >= _CHECK_INTERVAL_S:
            self._checked_at = now
            self._marks.say_alive()
            self._notice_cut()
        if not self._log.read(self.position, _SIZE_FIELD).strip(b"\0"):
            self._look_farther(now, _QUIET_SHARE)
            return False
        if not self._fingerprints.is_newest_right():
            return self._notice_cut()
        part = self._next_part()
        moved = part is not None and self._take(part)
        if not moved:
            self._look_farther(now, _STUCK_SHARE)
        return moved

    def _next_part(self) -> LogPart | None:
        """Return whole records from the position on, within the window."""
        if self._walk is None:
            files = MappedFileQueue(self._paths.commit_log, self._log.listing().file_size)
            self._walk = LogWalk(files, 0, Checker(crc=Crc.MARKS), chunk_size_bytes=_MOST_WINDOW_BYTES)
        self._walk.position = self.position
        limit = self.floor if self.position < self.floor else self.position + self._window
        part = next(self._walk.parts(limit=limit, floor=self.floor), None)
        if part is None:  # the record is larger than the window, or torn
            size = int.from_bytes(self._log.read(self.position, _SIZE_FIELD), "big", signed=True)
            self._window = min(max(self._window, size), self._log.known.file_size or self._window)
        return part

    def _take(self, part: LogPart) -> bool:
        """Publish the dispatched records of *part*; return True if there are any."""
        rows = part.requests
        missing = self._queues.first_without_unit(part.buffer, rows[rows["physical_offset"] >= self.floor])
        end = part.end_offset if missing is None else missing
        self._marks.intend(0, max(part.end_offset, self.position))
        if end <= self.position:
            return False
        dispatched = rows[rows["physical_offset"] < end]
        self._report_damage(part, dispatched)
        if len(dispatched):
            self._fingerprints.add(int(dispatched["physical_offset"][-1]))
        self._window = _window_after(end - self.position, self._window)
        self._publish(end)
        return True

    def _publish(self, end: int) -> None:
        self.position = end
        self._scan_pause = _FIRST_SCAN_S
        self._scan_at = time.monotonic() + max(_FIRST_SCAN_S, _STUCK_SHARE * self._scan_took)
        self._marks.publish(0, end)

    # -- gaps and truncation ----------------------------------------------------------------------------------------

    def _look_farther(self, now: float, share: int) -> None:
        """Check whether the broker has passed the position, at which there is no record or none that is dispatched.

        The broker may have skipped damage, or the topic is deleted. Reading all queues is slow, so the pauses grow.
        """
        if now < self._scan_at:
            return
        starts = self._log.listing().starts
        if starts and self.position < starts[0]:  # the files at the position have expired
            self._publish(starts[0])
        self.floor = max(self._queues.greatest_end(), self.floor)
        self._scan_took = time.monotonic() - now
        self._scan_pause = min(2 * self._scan_pause, _LAST_SCAN_S)
        self._scan_at = time.monotonic() + max(self._scan_pause, share * self._scan_took)

    def _notice_cut(self) -> bool:
        """Begin a new term if the log was truncated below the position; return True if so."""
        cut = self._fingerprints.cut()
        if cut is None and self.position > self._log.listing().end:
            cut = self._log.known.end
        if cut is None:
            return False
        self._fingerprints.forget()
        if self._walk is not None:
            self._walk.close()
            self._walk = None
        self._begin(min(cut, self.position))
        return True

    # -- damage -----------------------------------------------------------------------------------------------------

    def _report_damage(self, part: LogPart, dispatched: RequestArray) -> None:
        for damage in part.damages:
            self._record(damage.physical_offset, damage.size, damage.reason)
        suspects = dispatched[dispatched["fault"] != 0]
        if not len(suspects):
            return
        offsets, sizes = suspects["physical_offset"], suspects["message_size"].astype(np.int64)
        again = read_records(self._log, offsets, sizes)  # dispatched after the walk, so they are whole now
        for row, skipped in zip(suspects[~again.right], again.skipped(suspects["queue_offset"]), strict=True):
            if skipped.reason != REMOVED:
                at = int(row["topic_at"])
                topic = part.buffer[at : at + int(row["topic_length"])].tobytes().decode("utf-8", "replace")
                self._record(
                    skipped.physical_offset,
                    int(row["message_size"]),
                    skipped.reason,
                    topic=topic,
                    queue_id=int(row["queue_id"]),
                    queue_offset=skipped.queue_offset,
                )

    def _record(self, physical_offset: int, size: int, reason: str, **where: str | int) -> None:
        self.damages += self._ledger.record(
            physical_offset=physical_offset,
            size=size,
            reason=reason,
            **where,  # type: ignore[arg-type]
        )


def _window_after(moved: int, window: int) -> int:
    """Return the next window: twice the last one if most of it was published, otherwise the least one."""
    return min(2 * window, _MOST_WINDOW_BYTES) if 2 * moved > window else _LEAST_WINDOW_BYTES
