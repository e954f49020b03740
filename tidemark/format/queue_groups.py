"""Grouping of rows by queue: by the exact bytes of the topic and the queue id.

`topic_hash` only speeds up the search: different names with equal hashes can be constructed.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.consume_queue import UNIT_SIZE
from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.kernels import queues as kernel
from tidemark.format.kernels import units as units_kernel

_HEAD_SIZE = 7
_KEY = np.uint64(secrets.randbits(64))  # per process, so that positions in the table are unpredictable


class QueueNumbers(NamedTuple):
    """Queues of a set of rows, numbered from 0 in the order of their first rows."""

    numbers: NDArray[np.int32]  # per row: the number of its queue
    firsts: NDArray[np.int32]  # per queue: its first row


class QueueOrder(NamedTuple):
    """Rows sorted by queue: queue i has rows order[edges[i] : edges[i + 1]], in their original order."""

    order: NDArray[np.int64]  # only the numbers below the last edge are set
    edges: NDArray[np.int64]


def number_queues(buffer: U8Array, requests: RequestArray) -> QueueNumbers:
    """Number the queues of *requests*. buffer: the bytes to which their positions refer."""
    count = len(requests)
    table = np.empty(2 << count.bit_length(), np.int32)
    numbers, firsts = np.empty(count, np.int32), np.empty(count, np.int32)
    queues = kernel.group_rows(buffer, requests, _KEY, 0, table, numbers, firsts)
    return QueueNumbers(numbers, firsts[:queues])


def order_by_queue(queues: QueueNumbers) -> QueueOrder:
    """Sort rows by queue, stably."""
    order = np.empty(len(queues.numbers), np.int64)
    edges = np.zeros(len(queues.firsts) + 1, np.int64)
    kernel.order_rows(queues.numbers, edges, order)
    return QueueOrder(order, edges)


def sort_by_queue(buffer: U8Array, requests: RequestArray, *, without_flags: int) -> QueueOrder:
    """Sort the *requests* without a bit of *without_flags* in sys_flag by queue, stably."""
    count = len(requests)
    work = np.empty(2 * count + (2 << count.bit_length()), np.int32)
    order, edges = np.empty(count, np.int64), np.empty(count + 1, np.int64)
    queues = kernel.sort_by_queue(buffer, requests, _KEY, without_flags, work, order, edges)
    return QueueOrder(order, edges[: queues + 1])


def encode_groups(
    requests: RequestArray, order: NDArray[np.int64], edges: NDArray[np.int64]
) -> tuple[memoryview, list[list[int]]]:
    """Encode ConsumeQueue units of *requests* in the *order* and groups of `sort_by_queue`, and describe the groups.

    A group's numbers: position and end of its topic, queue id, first queue offset, begin and end of its units, and 1 if
    it is plain, otherwise 0. In a plain group, no row has a fault, and the queue offsets ascend by one.
    """
    units = np.empty(UNIT_SIZE * len(order), np.uint8)
    heads = np.empty((len(edges) - 1, _HEAD_SIZE), np.int64)
    units_kernel.encode_groups(requests, order, edges, units, heads)
    return units.data, heads.tolist()


def topic_of(buffer: U8Array, row: np.void) -> bytes:
    """Return the bytes of a row's topic."""
    at = int(row["topic_at"])
    return buffer[at : at + int(row["topic_length"])].tobytes()
