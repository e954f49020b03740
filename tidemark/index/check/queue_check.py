"""Checks one queue: compares its units with those that the log yields."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tidemark.format import consume_queue
from tidemark.format.dispatch_request import RequestArray
from tidemark.index.build import BatchConsumeQueueBuilder, ConsumeQueueBuilder, Oddity, QueueBuilder
from tidemark.index.check.expected_units import (
    BATCH,
    SIMPLE,
    ExpectedFiles,
    decode,
    differences,
    open_queue,
    runs_of,
)
from tidemark.index.check.findings import Note, Reason, Report, Scope
from tidemark.index.check.verdicts import QueueVerdict
from tidemark.index.queue_end import find_batch_end

_STEP_UNITS = 50_000
_ODD_WITHOUT_UNIT = ("QUEUE_OFFSET", "BATCH_SIZE")
_ODD_TEXTS = {
    "QUEUE_HOLE": "queue offsets before this record are missing",
    "QUEUE_REPEAT": "the queue offset exists already",
    "QUEUE_RESTART": "the queue's offsets restarted at 0",
    "QUEUE_OFFSET": "the queue offset is impossible",
    "BATCH_SIZE": "the count or base offset of the inner batch is impossible",
}


class _State(enum.Enum):
    """State of a run of units that differ."""

    MISSING = enum.auto()
    LAGS = enum.auto()
    WRONG = enum.auto()
    FILLED = enum.auto()  # a unit in place of a pre-blank one: right if its record is gone or damaged


@dataclass
class _Stretch:
    state: _State
    first: int  # unit
    end: int
    physical_offset: int  # of the first expected record; if FILLED, the one in the unit


class QueueCheck:
    """Check of one queue: `take` receives its records in the order of the log, `finish` reports the findings.

    dead_end  records below it belong to a deleted topic of that name
    """

    def __init__(
        self,
        folder: Path,
        *,
        topic: str,
        queue_id: int,
        batch: bool,
        scope: Scope,
        report: Report,
        dead_end: int = 0,
        with_extension: bool = False,
    ) -> None:
        self._first_offset: int | None = None  # of the first message seen
        self._next_offset = 0  # exclusive
        self._records = 0
        self._where: dict[str, Any] = {"topic": topic, "queue_id": queue_id}
        self._batch = batch
        self._kind = BATCH if batch else SIMPLE
        self._scope = scope
        self._report = report
        self._gone_below = max(scope.start, dead_end)  # units of expired and dead records point below it
        self._with_extension = with_extension
        self._actual = open_queue(folder, self._kind, 300_000 * self._kind.size)
        origin = find_batch_end(self._actual, self._gone_below) if batch and self._gone_below else 0
        self._expected = ExpectedFiles(self._actual, origin=origin, differ=self._differ)
        self._builder: QueueBuilder
        if batch:
            self._builder = BatchConsumeQueueBuilder(self._expected, mark=0)
        else:
            self._builder = ConsumeQueueBuilder(self._expected, mark=0)
        self._first_unit: int | None = None
        self._last_physical_offset = scope.start
        self._stretches: list[_Stretch] = []

    # -- expected units -------------------------------------------------------------------------------------------

    def take(self, requests: RequestArray) -> None:
        """Compare the units of the queue's next records, at least one."""
        self._records += len(requests)
        if self._first_unit is None:
            self._first_unit = (
                self._expected.min_offset // self._kind.size if self._batch else int(requests["queue_offset"][0])
            )
            self._first_offset = int(requests["base_offset"][0])
        for oddity in self._builder.build(requests):
            self._report_oddity(oddity, requests)
        self._last_physical_offset = int(requests["physical_offset"][-1])
        self._next_offset = max(self._next_offset, int((requests["base_offset"] + requests["batch_size"]).max()))

    def _report_oddity(self, oddity: Oddity, requests: RequestArray) -> None:
        place, size, reason, queue_offset = oddity
        text = _ODD_TEXTS[reason]
        if reason in _ODD_WITHOUT_UNIT:
            self._report.find_damage(
                reason, text, physical_offset=place, size=size, queue_offset=queue_offset, **self._where
            )
            return
        earlier = requests["physical_offset"][requests["physical_offset"] < place]
        before = int(earlier[-1]) if len(earlier) else self._last_physical_offset
        if reason == "QUEUE_HOLE" and self._report.has_damage_between(before, place):
            return  # the missing records are in the damaged place
        self._report.find(reason, text, physical_offset=place, size=size, queue_offset=queue_offset, **self._where)

    # -- units in the files ---------------------------------------------------------------------------------------

    def _differ(self, at: int, expected: bytes, actual: bytes) -> None:
        """Record the units of a write that differ from the files."""
        found = differences(self._kind, expected, actual, with_extension=self._with_extension)
        differs, unit = found.differs, at // self._kind.size
        if self._scope.is_range and self._first_unit is not None:  # the file's head belongs to earlier records
            differs[: max(0, self._first_unit - unit)] = False
        is_blank = np.zeros(len(differs), np.bool_)
        if not self._batch:
            is_blank = found.expected["message_size"] == consume_queue.PRE_BLANK_SIZE
        is_filled = differs & is_blank & self._kind.is_live(found.actual)
        is_built = found.expected["physical_offset"] < self._scope.built_to
        states = (
            (_State.MISSING, differs & found.is_zero & is_built),
            (_State.LAGS, differs & found.is_zero & ~is_built),
            (_State.WRONG, differs & ~found.is_zero & ~is_filled),
        )
        runs = [(first, end, state) for state, mask in states for first, end in runs_of(mask)]
        runs += [(i, i + 1, _State.FILLED) for i in np.flatnonzero(is_filled).tolist()]
        for first, end, state in sorted(runs, key=lambda run: run[0]):
            units = found.actual if state is _State.FILLED else found.expected
            self._add(state, unit + first, unit + end, int(units["physical_offset"][first]))

    def _add(self, state: _State, first: int, end: int, physical_offset: int) -> None:
        if state is _State.FILLED and physical_offset < self._gone_below:
            return
        last = self._stretches[-1] if self._stretches else None
        if last is not None and last.state is state is not _State.FILLED and last.end == first:
            last.end = end
        else:
            self._stretches.append(_Stretch(state, first, end, physical_offset))

    # -- at the end of the log ------------------------------------------------------------------------------------

    def finish(self, log_end: int) -> QueueVerdict:
        """Report the findings, including units outside of the expected ones, and return the verdict."""
        behind = self._check_rest(log_end)
        lagging = 0
        for stretch in self._stretches:
            is_last = stretch.end * self._kind.size == self._expected.end and not behind
            if stretch.state is _State.LAGS and is_last:
                lagging += stretch.end - stretch.first
            elif stretch.state is not _State.FILLED or not self._report.is_damaged(stretch.physical_offset):
                self._report_stretch(stretch)
        self._actual.close()
        kind = "BatchCQ" if self._batch else "SimpleCQ"
        return QueueVerdict(
            kind=kind,
            records=self._records,
            first=self._first_offset,
            next=self._next_offset,
            lagging=lagging,
            **self._where,
        )

    def _report_stretch(self, stretch: _Stretch) -> None:
        count = stretch.end - stretch.first
        wrong = stretch.state in (_State.WRONG, _State.FILLED)
        units = f"{count} units from {stretch.first} on are" if count > 1 else f"unit {stretch.first} is"
        self._report.find(
            Reason.UNIT_WRONG if wrong else Reason.UNIT_MISSING,
            f"{units} {'different from the log' if wrong else 'missing'}",
            physical_offset=stretch.physical_offset,
            queue_offset=None if self._batch else stretch.first,
            count=count,
            **self._where,
        )

    def _check_rest(self, log_end: int) -> bool:
        """Check the units outside of the expected ones; return True if live units follow the last expected one."""
        size = self._kind.size
        seen_from = self._expected.file_start(self._first_unit * size) if self._first_unit is not None else 0
        seen_end = self._expected.end if self._first_unit is not None else 0
        behind = False
        for first, end in self._actual.data_stretches(0):
            for part_first, part_end in ((first, min(end, seen_from)), (max(first, seen_end), end)):
                at = part_first - part_first % size
                while at < part_end:
                    length = min(-(-(part_end - at) // size), _STEP_UNITS) * size
                    if at >= seen_end:
                        behind |= self._check_units(at, self._actual.read_all(at, length), log_end)
                    elif not self._scope.is_range:
                        self._check_units(at, self._actual.read_all(at, length), log_end)
                    at += length
        return behind

    def _check_units(self, at: int, data: bytes, log_end: int) -> bool:
        """Report units without a record and without another reason to exist; return True if any unit is live."""
        units = decode(self._kind, data)
        there = np.frombuffer(data, np.uint8).reshape(-1, self._kind.size).any(axis=1)
        if not there.any():
            return False
        places = units["physical_offset"].astype(np.int64)
        live = self._kind.is_live(units)
        ours = there & ~(live & (places < self._gone_below)) & ~(live & (places >= log_end) & self._may_run_ahead)
        if not self._batch:
            ours &= units["message_size"] != consume_queue.PRE_BLANK_SIZE
        for i in np.flatnonzero(ours & live):
            ours[i] = not self._report.is_damaged(int(places[i]))
        for first, end in runs_of(ours):
            self._report_extra(at // self._kind.size + first, end - first, int(places[first]), log_end)
        return bool((there & live).any())

    @property
    def _may_run_ahead(self) -> bool:
        """True if records exist, or are being written, past the checked part."""
        return self._scope.is_living or self._scope.end is not None

    def _report_extra(self, unit: int, count: int, physical_offset: int, log_end: int) -> None:
        where = {**self._where, "queue_offset": None if self._batch else unit, "count": count}
        what = f"{count} units from {unit} on" if count > 1 else f"unit {unit}"
        if physical_offset >= log_end and not self._scope.is_clean:
            self._report.note(
                Note.UNITS_BEHIND_END,
                f"{what} for records past the log's end: the next start drops them",
                physical_offset=physical_offset,
                **where,
            )
        else:
            self._report.find(
                Reason.UNIT_EXTRA, f"{what} without a record in the log", physical_offset=physical_offset, **where
            )
