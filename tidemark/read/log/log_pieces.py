"""Pieces of a range of the CommitLog: records, blank ends, and gaps in which no record starts.

For inspecting the log itself. A gap is not necessarily damage: a range that begins within a record begins with a gap.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tidemark.format.check import Checker, CheckResult, Crc, find_next_record
from tidemark.format.dispatch_request import Fault, Outcome, U8Array
from tidemark.format.record import Magic
from tidemark.read.file_run import FileRun

FILE_MISSING = "FILE_MISSING"
_CHUNK_SIZE_BYTES = 1 << 20


class PieceKind(enum.Enum):
    """Kind of a piece. V1 and V2: records with that magic."""

    V1 = "V1"
    V2 = "V2"
    BLANK = "BLANK"
    GAP = "GAP"


class Piece(NamedTuple):
    """One piece. Fields of records are None for other kinds. fault: a Fault's name, or FILE_MISSING."""

    physical_offset: int
    size: int
    kind: PieceKind
    fault: str | None = None
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    message_count: int | None = None
    store_timestamp_ms: int | None = None


class LogStretch:
    """Pieces of *log* from *start* to *end*: at most *most*, ending after *most_bytes* were read.

    There is at least one piece. Afterwards `position` is the start of the next stretch.
    """

    def __init__(self, log: FileRun, start: int, *, end: int, most: int, most_bytes: int) -> None:
        self._log = log
        self._end = end
        self._most = most
        self._most_bytes = most_bytes
        self._checker = Checker(crc=Crc.MARKS, max_rows=most)
        self._chunk = min(_CHUNK_SIZE_BYTES, most_bytes)
        self._read_bytes = 0
        self._pieces: list[Piece] = []
        self.position = start

    def pieces(self) -> list[Piece]:
        """Return the pieces, ascending. Adjacent gaps are merged."""
        file_size = self._log.listing().file_size
        while file_size and self._goes_on():
            file_end = self.position - self.position % file_size + file_size
            for piece in self._look(min(self._end, file_end), file_end):
                self._add(piece)
        return self._pieces

    def _goes_on(self) -> bool:
        if self.position >= self._end:
            return False
        return not self._pieces or (len(self._pieces) < self._most and self._read_bytes < self._most_bytes)

    def _add(self, piece: Piece) -> None:
        self.position = piece.physical_offset + piece.size
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.kind is piece.kind is PieceKind.GAP:
            self._pieces[-1] = last._replace(size=last.size + piece.size)
        else:
            self._pieces.append(piece)

    def _look(self, stop: int, file_end: int) -> Iterator[Piece]:
        """Yield the pieces of one read; none if it was too short, and then the next read is longer."""
        start = self.position
        buffer = np.empty(min(self._chunk, stop - start), np.uint8)
        if not self._log.read_into(start, buffer):
            yield Piece(start, stop - start, PieceKind.GAP, FILE_MISSING)
            return
        self._read_bytes += buffer.size
        result = self._checker.check(buffer, base_offset=start, file_end=file_end - start)
        yield from self._records(buffer, start, result)
        if len(self._pieces) < self._most:
            yield from self._piece_after(buffer, start, result, stop, file_end)

    def _records(self, buffer: U8Array, start: int, result: CheckResult) -> Iterator[Piece]:
        for row in result.requests[: self._most - len(self._pieces)]:
            at, topic_at = int(row["physical_offset"]) - start, int(row["topic_at"])
            magic = int.from_bytes(buffer[at + 4 : at + 8].tobytes(), "big", signed=True)
            yield Piece(
                int(row["physical_offset"]),
                int(row["message_size"]),
                PieceKind.V2 if magic == Magic.V2 else PieceKind.V1,
                Fault(row["fault"]).name if row["fault"] else None,
                buffer[topic_at : topic_at + int(row["topic_length"])].tobytes().decode("utf-8", "replace"),
                int(row["queue_id"]),
                int(row["queue_offset"]),
                int(row["batch_size"]),
                int(row["store_timestamp"]),
            )

    def _piece_after(
        self, buffer: U8Array, start: int, result: CheckResult, stop: int, file_end: int
    ) -> Iterator[Piece]:
        """Yield the piece at which the check stopped, if it is not a record."""
        at = start + result.end_at
        is_cut = start + buffer.size < stop
        if result.outcome is Outcome.BLANK:
            yield Piece(at, file_end - at, PieceKind.BLANK)
        elif result.outcome is Outcome.PARTIAL and is_cut:
            if result.end_at == 0:  # longer than a chunk
                self._chunk = max(2 * self._chunk, int.from_bytes(buffer[:4].tobytes(), "big", signed=True))
        elif result.outcome is Outcome.PARTIAL:
            yield Piece(at, stop - at, PieceKind.GAP, Fault.LENGTH.name)
        elif result.outcome is Outcome.BAD:
            found = find_next_record(buffer, base_offset=start, start=result.end_at + 1, file_end=file_end - start)
            if found is None and is_cut and self._chunk < self._most_bytes:
                self._chunk = self._most_bytes  # search a longer range
                if result.end_at == 0:
                    return
            gap_end = buffer.size if found is None else found
            yield Piece(at, start + gap_end - at, PieceKind.GAP, result.fault.name)
