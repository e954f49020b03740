"""Dispatch: which records of a walked part go to which queue (spec 8.2; design: a shard owns whole queues)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.sys_flag import SysFlag

_UNDECIDED_OR_TAKEN_BACK = int(SysFlag.TRANSACTION_PREPARED)  # the bit that rolled-back ones have, too


class QueueRun(NamedTuple):
    """Records of one queue, in physical order, at least one."""

    topic: str
    queue_id: int
    requests: RequestArray


def queue_records(requests: RequestArray) -> RequestArray:
    """Those records that get a queue unit: neither prepared nor rolled-back transactions."""
    hidden = (requests["sys_flag"] & _UNDECIDED_OR_TAKEN_BACK) != 0
    return requests[~hidden] if hidden.any() else requests


class QueueGroups(NamedTuple):
    """Records sorted by queue: group i is rows[edges[i] : edges[i + 1]], in physical order, at least one."""

    rows: RequestArray
    edges: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.edges) - 1

    def run(self, buffer: U8Array, i: int) -> QueueRun:
        """Group *i* with its queue's name. buffer: what the records were walked in."""
        requests = self.rows[self.edges[i] : self.edges[i + 1]]
        first = requests[0]
        at, length = int(first["topic_at"]), int(first["topic_length"])
        topic = buffer[at : at + length].tobytes().decode("utf-8", "replace")
        return QueueRun(topic, int(first["queue_id"]), requests)


def group_by_queue(requests: RequestArray) -> QueueGroups:
    """The *requests* that get a queue unit, grouped by a 64-bit hash of topic and queue id."""
    rows = queue_records(requests)
    hashes = rows["topic_hash"]
    if not len(rows):
        return QueueGroups(rows, np.zeros(1, np.int64))
    if (hashes == hashes[0]).all():
        return QueueGroups(rows, np.array((0, len(rows)), np.int64))
    rows = np.take(rows, np.argsort(hashes, kind="stable"))  # forty times as fast as rows[order]: not by field
    hashes = rows["topic_hash"]
    changes = np.flatnonzero(hashes[1:] != hashes[:-1]) + 1
    return QueueGroups(rows, np.concatenate(([0], changes, [len(rows)])).astype(np.int64))


def runs_by_queue(buffer: U8Array, requests: RequestArray) -> Iterator[QueueRun]:
    """The groups of *requests*, named. buffer: what they were walked in."""
    groups = group_by_queue(requests)
    for i in range(len(groups)):
        yield groups.run(buffer, i)
