"""Fast path for open queues without gaps: units of all queues are encoded together and written queue by queue.

With thousands of queues, a part of the log has only a few records of each, so the cost per queue dominates.
"""

from __future__ import annotations

from tidemark.format.queue_groups import encode_groups
from tidemark.index.build import ConsumeQueueBuilder
from tidemark.index.dispatch import QueueGroups


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
        if not self._builders:
            return list(range(len(groups)))
        topics = memoryview(groups.buffer)  # type: ignore[arg-type]
        units, heads = encode_groups(groups.requests, groups.order, groups.edges)
        left: list[int] = []
        for i, (topic_at, topic_end, queue_id, queue_offset, at, end, is_plain) in enumerate(heads):
            builder = self._builders.get((bytes(topics[topic_at:topic_end]), queue_id)) if is_plain else None
            if builder is None or not builder.append_units(queue_offset, units[at:end]):
                left.append(i)
        return left
