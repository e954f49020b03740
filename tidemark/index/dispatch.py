"""Dispatch: which records of a walked part go to which queue (spec 8.2; design: a shard owns whole queues)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.record import TRANSACTION_MASK, SysFlag


class QueueRun(NamedTuple):
    """Records of one queue, in physical order, at least one."""

    topic: str
    queue_id: int
    requests: RequestArray


def queue_records(requests: RequestArray) -> RequestArray:
    """Those records that get a queue unit: neither prepared nor rolled-back transactions."""
    kind = requests["sys_flag"] & TRANSACTION_MASK
    hidden = (kind == SysFlag.TRANSACTION_PREPARED) | (kind == SysFlag.TRANSACTION_ROLLBACK)
    return requests[~hidden] if hidden.any() else requests


def runs_by_queue(buffer: U8Array, requests: RequestArray) -> Iterator[QueueRun]:
    """Group *requests* by (topic, queue id). buffer: what they were walked in.

    Rows are grouped by a 64-bit hash of topic and queue id.
    """
    requests = queue_records(requests)
    if len(requests) == 0:
        return
    hashes = requests["topic_hash"]
    if len(requests) == 1 or (hashes == hashes[0]).all():
        groups = [requests]
    else:
        order = np.argsort(hashes, kind="stable")
        requests = np.take(requests, order)  # forty times as fast as requests[order]: whole rows, not field by field
        hashes = requests["topic_hash"]
        groups = np.split(requests, np.flatnonzero(hashes[1:] != hashes[:-1]) + 1)
    for group in groups:
        first = group[0]
        at, length = int(first["topic_at"]), int(first["topic_length"])
        topic = buffer[at : at + length].tobytes().decode("utf-8", "replace")
        yield QueueRun(topic, int(first["queue_id"]), group)
