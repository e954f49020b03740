"""Fast path for open queues without gaps: units of all queues are encoded together and written queue by queue.

With thousands of queues, a part of the log has only a few records of each, so the cost per queue dominates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidemark.format import consume_queue
from tidemark.index.build import ConsumeQueueBuilder
from tidemark.index.dispatch import QueueGroups

_UNIT_SIZE = consume_queue.UNIT_SIZE


class OpenQueues:
    """ConsumeQueue builders without an extension, by topic and queue id."""

    def __init__(self) -> None:
        self._builders: dict[tuple[bytes, int], ConsumeQueueBuilder] = {}

    def add(self, topic: str, queue_id: int, builder: ConsumeQueueBuilder) -> None:
        """Let `append` write this queue's records."""
        if builder.ext is None:
            self._builders[topic.encode(), queue_id] = builder

    def clear(self) -> None:
        """Remove all builders."""
        self._builders.clear()

    def append(self, groups: QueueGroups) -> list[int]:
        """Append the faultless groups that continue their queue without a gap; return the indices of all others."""
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
    """Return a mask of the groups without faults whose offsets ascend by one."""
    offsets = groups.rows["queue_offset"]
    plain = groups.rows["fault"] == 0
    plain[1:] &= offsets[1:] == offsets[:-1] + 1
    plain[groups.edges[:-1]] = groups.rows["fault"][groups.edges[:-1]] == 0  # a group's first row has no predecessor
    return np.logical_and.reduceat(plain, groups.edges[:-1])
