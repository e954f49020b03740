"""LogRepair: compares a member's log with those of the others, and replaces its damaged bytes by theirs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import structlog
from isal.isal_zlib import crc32

from tidemark.errors import FlushFailedError, StoreError
from tidemark.format.dispatch_request import Fault
from tidemark.index.ledger import read_ledger
from tidemark.replication.known_checksums import STEP_BYTES, KnownChecksums
from tidemark.replication.repairs import Repair, last_comparison_s, note_comparison, note_repair
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

from ..config import WriterSettings
from ..log.segments import Segments
from .group_metrics import GroupMetrics
from .member_log import MemberLog
from .sound_copy import Place, is_sound, sound_copy

log = structlog.get_logger()

_LOOK_S = 2.0  # between two looks at the ledger of damage
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 3_600.0  # after a repair that was not possible
_PIECE_BYTES = 64 << 20  # compared with one question
_SETTLE_S = 1.0  # until the other members know that the last bytes are committed
_LONGEST_RECORD_BYTES = 16 << 20


class _NextTry(NamedTuple):
    """When to try a repair again, which reads a file of the log. at: time.monotonic()"""

    at: float
    pause_s: float


class OtherLogs(Protocol):
    """The logs of the other members. The methods raise StoreError."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the members."""

    async def checksums(self, name: str, begin: int, end: int, step: int) -> Sequence[int]:
        """Return the CRC-32 of each *step* bytes of [begin, end)."""

    async def fetch(self, name: str, begin: int, end: int) -> bytes:
        """Return the bytes of [begin, end)."""


class LogRepair:
    """The repair of one member's log in one role. Lives on the event loop.

    It repairs what the ledger of damage has, and compares the whole log at intervals.

    segments: of the open store, in which repairs are written. member_log: a view of the same files.
    """

    def __init__(
        self,
        settings: WriterSettings,
        paths: StorePaths,
        storage: Storage,
        segments: Segments,
        member_log: MemberLog,
        others: OtherLogs,
        metrics: GroupMetrics,
    ) -> None:
        self.member_log = member_log
        self._interval_s = settings.compare_interval_s
        self._bytes_per_s = settings.compare_max_bytes_per_s
        self._paths = paths
        self._storage = storage
        self._segments = segments
        self._others = others
        self._metrics = metrics
        self._known = KnownChecksums(paths.replication)
        self._thread = ThreadPoolExecutor(1, "log-repair")
        self._task: asyncio.Task[None] | None = None
        self._not_before: dict[int, _NextTry] = {}  # places of the ledger that no member could repair

    def start(self, on_failure: Callable[[StoreError], None]) -> None:
        """Begin. on_failure: called if the disk cannot sync what was repaired, which ends this object's work."""
        self._task = asyncio.create_task(self._run(on_failure))

    async def stop(self) -> None:
        """End, after a write that is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        await asyncio.to_thread(self._thread.shutdown)
        self._known.close()

    async def _run(self, on_failure: Callable[[StoreError], None]) -> None:
        while self._others.names:
            await asyncio.sleep(min(_LOOK_S, self._interval_s or _LOOK_S))
            try:
                await self._repair_ledger()
                if self._interval_s and time.time() - last_comparison_s(self._folder) >= self._interval_s:
                    await self.compare()
                    note_comparison(self._folder, time.time())
            except FlushFailedError as error:
                on_failure(error)
                return
            except (StoreError, OSError) as error:
                log.warning("comparison_failed", error=str(error))
            except Exception:
                log.exception("comparison_failed")

    @property
    def _folder(self) -> Path:
        return self._paths.replication

    async def compare(self) -> None:
        """Compare all committed bytes with those of the other members, and repair ours."""
        last = self.member_log.committed
        await asyncio.sleep(_SETTLE_S)
        for begin, end in _pieces(await self.member_log.begin(), last):
            started = time.monotonic()
            await self._compare_piece(begin, end)
            self._metrics.note_compared(end - begin)
            await asyncio.sleep(max(0.0, (end - begin) / self._bytes_per_s - (time.monotonic() - started)))

    async def _compare_piece(self, begin: int, end: int) -> None:
        ours = await self.member_log.checksums(begin, end, STEP_BYTES)
        theirs: list[Sequence[int]] = []
        for name in self._others.names:
            try:
                theirs.append(await self._others.checksums(name, begin, end, STEP_BYTES))
            except StoreError as error:  # it is away, or its log begins later
                log.debug("member_not_compared", member=name, begin=begin, error=error.message)
        for number, crc in enumerate(ours):
            at = begin + number * STEP_BYTES
            await self._compare_step(at, min(at + STEP_BYTES, end), crc, {crcs[number] for crcs in theirs})

    async def _compare_step(self, begin: int, end: int, ours: int, theirs: set[int]) -> None:
        """Compare the checksum of [begin, end) with the noted one, else with those of the other members."""
        known = self._known.of(begin, end)
        if known is not None:
            if ours != known:
                await self._restore(begin, end, known)
        elif theirs == {ours}:
            self._known.note(begin, end, ours)
        elif theirs:
            for part in self._parts(begin, end):
                await self._repair(*part)

    async def _restore(self, begin: int, end: int, known: int) -> None:
        """Replace our bytes by those of a member with the checksum that was noted."""
        for name in self._others.names:
            with contextlib.suppress(StoreError):
                theirs = await self._others.fetch(name, begin, end)
                if crc32(theirs) == known:
                    ours = await self.member_log.read(begin, end)
                    for at, stop in self._parts(begin, end):
                        part = slice(at - begin, stop - begin)
                        await self._replace(at, ours[part], theirs[part], name)
                    return
        log.warning("damage_not_repaired", physical_offset=begin, reason="CHECKSUM")

    def _parts(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield [begin, end) file by file."""
        while begin < end:
            stop = min(end, self.member_log.end_of_file(begin))
            yield begin, stop
            begin = stop

    async def _repair_ledger(self) -> None:
        for entry in await asyncio.to_thread(read_ledger, self._paths.indexer):
            begin = entry["physical_offset"]
            end = min(begin + max(entry["size"], 1), self.member_log.committed)
            last = self._not_before.get(begin)
            if begin >= end or (last is not None and time.monotonic() < last.at):
                continue
            if not await self._repair(begin, end, was_damaged=entry["reason"] in Fault.__members__):
                pause_s = _FIRST_PAUSE_S if last is None else min(2 * last.pause_s, _LONGEST_PAUSE_S)
                self._not_before[begin] = _NextTry(time.monotonic() + pause_s, pause_s)
                log.warning("damage_not_repaired", physical_offset=begin, reason=entry["reason"], next_try_s=pause_s)

    async def _repair(self, begin: int, end: int, *, was_damaged: bool = False) -> bool:
        """Replace our bytes of [begin, end), of one file, if another member has the right ones.

        was_damaged: a check of these bytes has failed. If they pass now, because a kill followed their repair, that is
        noted, too.
        """
        file_end = self.member_log.end_of_file(begin)
        base = await self.member_log.record_start(begin)
        limit = min(end + _LONGEST_RECORD_BYTES, file_end, self.member_log.committed)
        place = Place(base, begin, min(end, limit), file_end)
        ours = await self.member_log.read(base, limit)
        copies = {}
        for name in self._others.names:
            try:
                copies[name] = await self._others.fetch(name, base, limit)
            except StoreError as error:
                log.debug("member_not_asked", member=name, begin=base, error=error.message)
        source = await asyncio.to_thread(sound_copy, ours, copies, place)
        if source is None:
            same = next((name for name, copy in copies.items() if place.of(copy) == place.of(ours)), None)
            if not was_damaged or same is None or not is_sound(ours, place):
                return False
            self._note(begin, end - begin, same)
            return True
        await self._replace(place.begin, place.of(ours), place.of(copies[source]), source)
        return True

    async def _replace(self, begin: int, ours: bytes, theirs: bytes, source: str) -> None:
        """Replace *ours* at physical offset *begin* by *theirs* where they differ."""
        if ours != theirs:
            first, data = _difference(ours, theirs)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._write, begin + first, data, source)

    def _write(self, offset: int, data: bytes, source: str) -> None:
        """Replace our bytes at physical *offset*, durably, and note that. Raises FlushFailedError, OSError."""
        files = self._segments.log
        files.write(offset, data)
        files.flush(files.file_start(offset))
        self._note(offset, len(data), source)

    def _note(self, offset: int, size: int, source: str) -> None:
        note_repair(self._folder, Repair(offset, size, source, time.time_ns() // 1_000_000), self._storage)
        self._metrics.note_repaired()
        log.warning("log_repaired", physical_offset=offset, size=size, source=source)


def _pieces(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield [begin, end) in pieces that begin at multiples of the piece's size."""
    while begin < end:
        stop = min(end, begin - begin % _PIECE_BYTES + _PIECE_BYTES)
        yield begin, stop
        begin = stop


def _difference(ours: bytes, theirs: bytes) -> tuple[int, bytes]:
    """Return where the two, of one length, first differ, and theirs from there to the last byte that differs."""
    differs = np.flatnonzero(np.frombuffer(ours, np.uint8) != np.frombuffer(theirs, np.uint8))
    first, last = int(differs[0]), int(differs[-1])
    return first, theirs[first : last + 1]
