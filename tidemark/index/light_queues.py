"""Light queues (LMQ): additional queues with a unit for a record that the log stores once (docs/format.md §2).

A record names them in INNER_MULTI_DISPATCH and holds its queue offset in each in INNER_MULTI_QUEUE_OFFSET. Records
without the two properties cost nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tidemark.format.dispatch_request import Fault, RequestArray, U8Array
from tidemark.format.tags import SCHEDULE_TOPIC
from tidemark.format.topic_name import LIGHT_QUEUE_PREFIX
from tidemark.index.dispatch import QueueRun, queue_records

_NOT_DISPATCHED = ("%RETRY%", "rmq_sys_")  # topic prefixes whose records go to no light queue
_OFFSET = re.compile(r"[0-9]{1,18}")


class LightRuns(NamedTuple):
    """Runs of light queues. misfits: rows with invalid properties, which get no unit in a light queue."""

    runs: list[QueueRun]
    misfits: RequestArray


def light_runs(buffer: U8Array, requests: RequestArray, *, is_batch: Callable[[str], bool]) -> LightRuns:
    """Group the records of *requests* by light queue, in physical order, with queue_offset of the light queue.

    Records of batch topics, records without a queue unit, and records whose properties fail their CRC are skipped.

    buffer    the bytes in which they were walked
    is_batch  returns True if a topic has BatchConsumeQueues
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
    return "/" in name or (name.startswith(LIGHT_QUEUE_PREFIX) and _OFFSET.fullmatch(offset) is not None)


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
    """Split at commas as Java does: without trailing empty strings; a blank value yields none."""
    pieces = value.split(",") if value.strip() else []
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces
