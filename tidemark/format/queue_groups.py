"""Grouping of rows by queue: by the exact bytes of the topic and the queue id.

`topic_hash` only speeds up the search: different names with equal hashes can be constructed.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.kernels import queues as kernel

_KEY = np.uint64(secrets.randbits(64))  # per process, so that positions in the table are unpredictable


class QueueNumbers(NamedTuple):
    """Queues of a set of rows, numbered from 0 in the order of their first rows."""

    numbers: NDArray[np.int32]  # per row: the number of its queue
    firsts: NDArray[np.int32]  # per queue: its first row


class QueueOrder(NamedTuple):
    """Rows sorted by queue: queue i has rows order[edges[i] : edges[i + 1]], in their original order."""

    order: NDArray[np.int64]
    edges: NDArray[np.int64]


def number_queues(buffer: U8Array, requests: RequestArray) -> QueueNumbers:
    """Number the queues of *requests*. buffer: the bytes to which their positions refer."""
    count = len(requests)
    table = np.full(2 << max(count - 1, 1).bit_length(), -1, np.int32)
    numbers, firsts = np.empty(count, np.int32), np.empty(count, np.int32)
    queues = kernel.group_rows(buffer, requests, _KEY, table, numbers, firsts)
    return QueueNumbers(numbers, firsts[:queues])


def order_by_queue(queues: QueueNumbers) -> QueueOrder:
    """Sort rows by queue, stably."""
    order = np.empty(len(queues.numbers), np.int64)
    edges = np.zeros(len(queues.firsts) + 1, np.int64)
    kernel.order_rows(queues.numbers, edges, order)
    return QueueOrder(order, edges)


def topic_of(buffer: U8Array, row: np.void) -> bytes:
    """Return the bytes of a row's topic."""
    at = int(row["topic_at"])
    return buffer[at : at + int(row["topic_length"])].tobytes()
