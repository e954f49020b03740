"""The scrub: compares derived files with the log at a low rate in the background and requests rebuilds of damage."""

from __future__ import annotations

import contextlib
import threading

import structlog

from tidemark.errors import StoreError
from tidemark.format.check import shard_of
from tidemark.index.check.derived import Damaged, check_index_files, compare_stretch, damaged_by
from tidemark.index.check.findings import Finding
from tidemark.index.rebuild_request import RebuildRequest, index_path, queues_path, save_request
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import TermsFile
from tidemark.store.storage import Storage, replace_file

from ..plan import EpochPlan

_STEP_S = 5.0
_LEAST_STEP_BYTES = 1 << 20
_IDLE_S = 10.0
_MOST_AT_ONCE_BYTES = 64 << 20

log = structlog.get_logger()


class Scrub:
    """Comparison of the log with derived files in steps, which starts over at the log's end.

    Its own thread runs `run` and owns all state. Other threads only read the counts: each is one attribute, so a read
    is never torn.
    """

    def __init__(self, plan: EpochPlan, bytes_per_s: int, storage: Storage) -> None:
        self._plan = plan
        self._bytes_per_s = bytes_per_s
        self._storage = storage
        self._closed = threading.Event()
        self._rebuilt_in: list[set[object]] = [set(), set()]  # files requested in the last round and in this one
        self._thread = threading.Thread(target=self.run, name="scrub", daemon=True)
        self._path = plan.paths.indexer / "scrubbed"
        self.position = self._saved_position()  # physical offset that this round has reached
        self.scrubbed_bytes = 0
        self.rounds = 0
        self.damaged_files = 0  # queues, and runs of index files, that were found

    def _saved_position(self) -> int:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int(self._path.read_text("ascii"))
        return 0

    def _save_position(self) -> None:
        replace_file(self._storage, self._path, b"%d\n" % self.position, keep_previous=False)

    def scrub_at_a_start(self) -> None:
        """Compare as many bytes as 64 seconds allow, at once: a drain runs no background thread."""
        left = 64 * self._bytes_per_s
        while left > 0 and (done := self.scrub(min(left, _MOST_AT_ONCE_BYTES))):
            left -= done

    def start(self) -> None:
        """Start the thread, unless the rate is 0."""
        if self._bytes_per_s:
            self._thread.start()

    def close(self) -> None:
        """End the thread after its current step."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def run(self) -> None:
        """Scrub until `close`."""
        step = max(_LEAST_STEP_BYTES, int(self._bytes_per_s * _STEP_S))
        pause_s = _IDLE_S
        while not self._closed.wait(pause_s):
            try:
                done = self.scrub(step)
            except (StoreError, OSError, ValueError) as error:  # files may vanish or appear meanwhile: retry later
                log.warning("scrub_postponed", error=type(error).__name__, message=str(error))
                done = 0
            pause_s = done / self._bytes_per_s if done else _IDLE_S

    def scrub(self, step: int) -> int:
        """Compare the next *step* bytes of the log and return how many bytes were compared; 0 at a round's end."""
        if any(self._plan.paths.indexer.glob("rebuild-*")):  # files are incomplete until the rebuild ends
            return 0
        files = self._plan.open_log()
        try:
            start, end = max(self.position, files.min_offset), self._built_end()
            if start >= end:
                self._end_round(files.min_offset, end)
                return 0
            until = min(start + step, end)
            findings, reached = compare_stretch(
                self._plan.paths, files, start, until, index_slots=self._plan.index_slots
            )
            if findings:  # compare again: a topic may have been deleted, or a file may have expired
                findings, reached = compare_stretch(
                    self._plan.paths, files, start, until, index_slots=self._plan.index_slots
                )
        finally:
            files.close()
        if reached == start and until < end:  # a record longer than the step
            return self.scrub(2 * step)
        self._act(findings)
        self.position = end if reached == start else reached
        self.scrubbed_bytes += self.position - start
        self._save_position()
        return self.position - start

    def _end_round(self, start: int, end: int) -> None:
        if not self.position:
            return
        self._act(check_index_files(self._plan.paths, start, end, index_slots=self._plan.index_slots))
        self._rebuilt_in = [self._rebuilt_in[1], set()]
        self.position = 0
        self._save_position()
        self.rounds += 1
        log.info("scrub_finished", rounds=self.rounds, end=end, damaged_files=self.damaged_files)

    def _built_end(self) -> int:
        """Return the physical offset below which everything is built and synced."""
        marks = Marks.open_read_only(self._plan.paths.marks)
        try:
            return TermsFile(self._plan.paths.terms).clamp(marks.durable_floor(), of_term=marks.term)
        finally:
            marks.close()

    def _act(self, findings: list[Finding]) -> None:
        damaged = damaged_by(findings, self._plan.paths)
        if not damaged:
            return
        self.damaged_files += len(damaged.queues) + (damaged.first is not None)
        log.error(
            "derived_files_damaged",
            queues=[f"{topic}/{queue_id}" for topic, queue_id in sorted(damaged.queues)],
            index_file=damaged.first,
            first_finding=findings[0].text,
            findings=len(findings),
        )
        self._request(self._without_hopeless(damaged))

    def _without_hopeless(self, damaged: Damaged) -> Damaged:
        """Return *damaged* without files that were rebuilt after the last round: a rebuild does not mend them."""
        before, now = self._rebuilt_in
        hopeless = before & {*damaged.queues, *(() if damaged.first is None else ("index",))}
        if hopeless:
            log.error("derived_files_stay_damaged", files=sorted(map(str, hopeless)))
        first = None if "index" in hopeless else damaged.first
        queues = frozenset(queue for queue in damaged.queues if queue not in hopeless)
        now.update(queues, () if first is None else ("index",))
        return Damaged(queues, first)

    def _request(self, damaged: Damaged) -> None:
        """Write requests for the shards' holders. No request exists now, and only a shard's holder removes one."""
        paths, shards = self._plan.paths, self._plan.shards
        for shard in range(shards):
            own = {queue for queue in damaged.queues if shard_of(queue[0].encode(), queue[1], shards) == shard}
            if own:
                save_request(queues_path(paths, shard), RebuildRequest(frozenset(own)), self._storage)
        if damaged.first is not None:
            save_request(index_path(paths), RebuildRequest(first=damaged.first), self._storage)
