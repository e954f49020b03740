"""ScannedLog: reads a log's parts from its scan, with LogWalk's interface, for builders and checks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidemark.format.check import shard_of
from tidemark.format.dispatch_request import RequestArray
from tidemark.format.queue_groups import number_queues, topic_of
from tidemark.index.log_walk import LogPart, LogWalk
from tidemark.index.scan.log_range import LogRange, ScannedRanges
from tidemark.index.scan.range_files import RangeFiles


class ScannedLog:
    """A walk from *position* through the scanned ranges, in order. It walks the log outside of them.

    walk           over the same log, for bytes that are in no range; it is closed with this
    rows, keys     read the rows, or the keys, of a part
    shard, shards  as Checker: only rows of this shard's queues. Shard 0 gets all damages, because a scan verifies the
                   records of all shards
    """

    def __init__(
        self,
        scanned: ScannedRanges,
        walk: LogWalk,
        *,
        rows: bool = True,
        keys: bool = True,
        shard: int = 0,
        shards: int = 1,
    ) -> None:
        self.position = walk.position
        self._folder, self._ranges = scanned
        self._walk = walk
        self._rows = rows
        self._keys = keys
        self._shard = shard
        self._shards = shards
        self._owners: dict[tuple[bytes, int], int] = {}  # (topic, queue id): shard

    def parts(self, *, limit: int, floor: int) -> Iterator[LogPart]:
        """Yield parts as LogWalk.parts does. A range that extends past *limit* is walked."""
        while (begin := self.position) < limit:
            inside = [each for each in self._ranges if each.start <= begin < each.end <= limit]
            behind = [each.start for each in self._ranges if begin < each.start and each.end <= limit]
            if inside:
                yield from self._scanned(inside[0])
            if self.position == begin:
                yield from self._walked(limit=min([limit, *behind, *(each.end for each in inside)]), floor=floor)
            if self.position == begin:
                return

    def close(self) -> None:
        """Close the log's files."""
        self._walk.close()

    def _walked(self, *, limit: int, floor: int) -> Iterator[LogPart]:
        self._walk.position = self.position
        for part in self._walk.parts(limit=limit, floor=floor):
            self.position = self._walk.position
            yield part
        self.position = self._walk.position

    def _scanned(self, log_range: LogRange) -> Iterator[LogPart]:
        for part in RangeFiles(self._folder, log_range).parts(rows=self._rows, keys=self._keys):
            if part.end_offset <= self.position:
                continue
            here = self._own(_from(part, self.position))
            self.position = part.end_offset
            yield here

    def _own(self, part: LogPart) -> LogPart:
        """Return *part* with only this shard's rows and damages."""
        if self._shards == 1 or not self._rows:
            return part
        rows = part.requests
        owned = self._owners_of(part, rows) == self._shard
        rows["owned"] = owned
        kept = rows[owned | (rows["multi_dispatch_length"] > 0)]
        return part._replace(requests=kept, damages=part.damages if self._shard == 0 else [])

    def _owners_of(self, part: LogPart, rows: RequestArray) -> np.ndarray:
        queues = number_queues(part.buffer, rows)
        return np.array([self._owner(part, row) for row in rows[queues.firsts]], np.int64)[queues.numbers]

    def _owner(self, part: LogPart, row: np.void) -> int:
        """Return the shard of the queue that *row* names."""
        queue = topic_of(part.buffer, row), int(row["queue_id"])
        owner = self._owners.get(queue)
        if owner is None:
            owner = self._owners[queue] = shard_of(*queue, self._shards)
        return owner


def _from(part: LogPart, position: int) -> LogPart:
    """Return the records, damages and keys of *part* at or above *position*."""
    if part.base_offset >= position:
        return part
    rows = part.requests[part.requests["physical_offset"] >= position]
    damages = [damage for damage in part.damages if damage.physical_offset >= position]
    keys = None if part.keys is None else part.keys.at_or_above(position)
    return part._replace(requests=rows, damages=damages, keys=keys)
