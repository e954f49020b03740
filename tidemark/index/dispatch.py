"""Dispatch: groups the records of a walked part by queue. A shard owns whole queues (docs/format.md §13)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.queue_groups import sort_by_queue, topic_of
from tidemark.format.sys_flag import SysFlag

_UNDECIDED_OR_TAKEN_BACK = int(SysFlag.TRANSACTION_PREPARED)  # rolled-back transactions have this bit, too


class QueueRun(NamedTuple):
    """Records of one queue, in physical order, at least one."""

    topic: str
    queue_id: int
    requests: RequestArray


def queue_records(requests: RequestArray) -> RequestArray:
    """Return the records that get a queue unit: all except prepared and rolled-back transactions."""
    hidden = (requests["sys_flag"] & _UNDECIDED_OR_TAKEN_BACK) != 0
    return requests[~hidden] if hidden.any() else requests


class QueueGroups(NamedTuple):
    """Records by queue: group i is requests[order[edges[i] : edges[i + 1]]], in physical order, at least one."""

    buffer: U8Array  # the bytes that the requests' positions refer to
    requests: RequestArray
    order: NDArray[np.int64]
    edges: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.edges) - 1

    def run(self, i: int) -> QueueRun:
        """Return group *i* with its queue's name."""
        # forty times as fast as an index by an array, which copies by field
        requests = self.requests.take(self.order[self.edges[i] : self.edges[i + 1]])
        first = requests[0]
        return QueueRun(topic_of(self.buffer, first).decode("utf-8", "replace"), int(first["queue_id"]), requests)


def group_by_queue(buffer: U8Array, requests: RequestArray) -> QueueGroups:
    """Group the *requests* that get a queue unit by topic and queue id. buffer: the bytes in which they were walked."""
    order, edges = sort_by_queue(buffer, requests, without_flags=_UNDECIDED_OR_TAKEN_BACK)
    return QueueGroups(buffer, requests, order, edges)


def runs_by_queue(buffer: U8Array, requests: RequestArray) -> Iterator[QueueRun]:
    """Yield the groups of *requests* with their queues' names. buffer: the bytes in which they were walked."""
    groups = group_by_queue(buffer, requests)
    for i in range(len(groups)):
        yield groups.run(i)
