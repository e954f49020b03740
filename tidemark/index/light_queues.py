"""Light queues (LMQ): further queues that have a unit of a record, which lies in the log once (docs/format.md §2).

A record names them in INNER_MULTI_DISPATCH and says its queue offset in each in INNER_MULTI_QUEUE_OFFSET. Only the
records that carry the two cost anything here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tidemark.format.dispatch_request import Fault, RequestArray, U8Array
from tidemark.format.tags import SCHEDULE_TOPIC
from tidemark.index.dispatch import QueueRun, queue_records

LIGHT_PREFIX = "%LMQ%"
_NOT_DISPATCHED = ("%RETRY%", "rmq_sys_")  # beginnings of topics whose records go to no light queue
_OFFSET = re.compile(r"[0-9]{1,18}")


class LightRuns(NamedTuple):
    """What records ask for. misfits: rows that ask for something that cannot be right, and get no unit more."""

    runs: list[QueueRun]
    misfits: RequestArray


def light_runs(buffer: U8Array, requests: RequestArray, *, is_batch: Callable[[str], bool]) -> LightRuns:
    """Records of *requests* as light queues have them: by queue, in physical order, queue_offset the light queue's.

    buffer    what they were walked in
    is_batch  whether a topic has BatchConsumeQueues: its records ask for nothing, nor do those without a queue unit,
              and those whose own CRC says that their properties are wrong
    """
    rows = queue_records(requests)
    rows = rows[(rows["multi_dispatch_length"] > 0) & (rows["multi_offsets_length"] > 0)]
    rows = rows[rows["fault"] != Fault.PROPERTY_CRC]
    places: dict[str, list[tuple[int, int]]] = {}  # name → (row, queue offset)
    misfits: list[int] = []
    for i, row in enumerate(rows):
        topic = _text(buffer, row, "topic")
        names = _pieces(_text(buffer, row, "multi_dispatch"))
        offsets = _pieces(_text(buffer, row, "multi_offsets"))
        if topic.startswith(_NOT_DISPATCHED) or topic == SCHEDULE_TOPIC or is_batch(topic) or not (names and offsets):
            continue
        if len(names) != len(offsets) or not all(map(_is_possible, names, offsets)):
            misfits.append(i)
            continue
        for name, offset in zip(names, offsets, strict=True):
            if "/" not in name:
                places.setdefault(name, []).append((i, int(offset)))
    return LightRuns(list(_runs(rows, places)), rows[misfits])


def _is_possible(name: str, offset: str) -> bool:
    return "/" in name or (name.startswith(LIGHT_PREFIX) and _OFFSET.fullmatch(offset) is not None)


def _runs(rows: RequestArray, places: dict[str, list[tuple[int, int]]]) -> Iterator[QueueRun]:
    for name, found in places.items():
        indices, offsets = zip(*found, strict=True)
        requests = rows[np.array(indices)]
        requests["queue_offset"] = offsets
        yield QueueRun(name, 0, requests)


def _text(buffer: U8Array, row: np.void, field: str) -> str:
    at, length = int(row[f"{field}_at"]), int(row[f"{field}_length"])
    return buffer[at : at + length].tobytes().decode("utf-8", "replace")


def _pieces(value: str) -> list[str]:
    """As Java splits: without the empty ones at the end; none of a blank value."""
    pieces = value.split(",") if value.strip() else []
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces
