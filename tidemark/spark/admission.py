"""How much of what is there goes into one trigger: limits, shared by the queues in proportion, as Kafka's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tidemark.client.received import TopicQueue

Offsets = Mapping[TopicQueue, int]
EndWithin = Callable[[TopicQueue, int, int, int], int]  # queue, start, end, max_bytes


def within_messages(starts: Offsets, ends: Offsets, most: int) -> dict[TopicQueue, int]:
    """*ends*, or nearer ones where there are more than *most* messages; a queue that has some gives one at least."""
    total = sum(ends[queue] - starts[queue] for queue in ends)
    if total <= most:
        return dict(ends)
    return {queue: starts[queue] + _share(ends[queue] - starts[queue], most, total) for queue in ends}


def _share(count: int, most: int, total: int) -> int:
    share = most * count / total
    return min(count, math.ceil(share) if share < 1 else math.floor(share))


def within_bytes(starts: Offsets, ends: Offsets, most: int, end_within: EndWithin) -> dict[TopicQueue, int]:
    """*ends*, or nearer ones: each queue may give its share of *most* bytes, all together one message at least."""
    counts = {queue: ends[queue] - starts[queue] for queue in ends if ends[queue] > starts[queue]}
    total = sum(counts.values())
    near = dict(starts) | {
        queue: end_within(queue, starts[queue], ends[queue], most * count // total) for queue, count in counts.items()
    }
    if counts and near == dict(starts):
        longest = max(counts, key=lambda queue: counts[queue])
        near[longest] += 1
    return near
