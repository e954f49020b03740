"""Queues that are open and simply go on: their units are made for all of them at once, and written queue by queue.

With thousands of queues a part of the log has a few records of each, so what is done for every queue decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidemark.format import consume_queue
from tidemark.index.build import ConsumeQueueBuilder
from tidemark.index.dispatch import QueueGroups

_UNIT_SIZE = consume_queue.UNIT_SIZE


class OpenQueues:
    """ConsumeQueue builders by topic and queue id, without those that have an extension."""

    def __init__(self) -> None:
        self._builders: dict[tuple[bytes, int], ConsumeQueueBuilder] = {}

    def add(self, topic: str, queue_id: int, builder: ConsumeQueueBuilder) -> None:
        """Let `append` write the records of this queue."""
        if builder.ext is None:
            self._builders[topic.encode(), queue_id] = builder

    def clear(self) -> None:
        """Forget all of them."""
        self._builders.clear()

    def append(self, groups: QueueGroups) -> list[int]:
        """Append the groups that follow what their queue has, sound and without a gap; numbers of all others."""
        if not self._builders or not len(groups):
            return list(range(len(groups)))
        rows, firsts = groups.rows, groups.edges[:-1]
        topic_at = rows["topic_at"][firsts]
        buffer = memoryview(groups.buffer)  # type: ignore[arg-type]
        units = memoryview(
            consume_queue.encode_units(
                physical_offset=rows["physical_offset"],
                message_size=rows["message_size"],
                tags_code=rows["tags_code"],
            )
        )
        left: list[int] = []
        each = zip(
            topic_at.tolist(),
            (topic_at + rows["topic_length"][firsts]).tolist(),
            rows["queue_id"][firsts].tolist(),
            rows["queue_offset"][firsts].tolist(),
            _are_plain(groups).tolist(),
            (_UNIT_SIZE * firsts).tolist(),
            (_UNIT_SIZE * groups.edges[1:]).tolist(),
            strict=True,
        )
        for i, (topic_at, topic_end, queue_id, queue_offset, is_plain, at, end) in enumerate(each):
            builder = self._builders.get((bytes(buffer[topic_at:topic_end]), queue_id)) if is_plain else None
            if builder is None or not builder.append_units(queue_offset, units[at:end]):
                left.append(i)
        return left


def _are_plain(groups: QueueGroups) -> NDArray[np.bool_]:
    """Which groups have no fault and ascend by one."""
    offsets = groups.rows["queue_offset"]
    plain = groups.rows["fault"] == 0
    plain[1:] &= offsets[1:] == offsets[:-1] + 1
    plain[groups.edges[:-1]] = groups.rows["fault"][groups.edges[:-1]] == 0  # a first one follows nothing here
    return np.logical_and.reduceat(plain, groups.edges[:-1])
