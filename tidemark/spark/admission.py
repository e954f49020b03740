"""How much of what is there goes into one trigger: limits, shared by the queues in proportion, as Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemark.client.received import TopicQueue

Offsets = Mapping[TopicQueue, int]
EndWithin = Callable[[TopicQueue, int, int, int], int]  # queue, start, end, max_bytes


def within_messages(starts: Offsets, ends: Offsets, most: int) -> dict[TopicQueue, int]:
    """*ends*, or nearer ones where there are more than *most* messages; a queue that has some gives one at least."""
    counts = _counts(starts, ends)
    total = sum(counts.values())
    if total <= most:
        return dict(ends)
    return dict(ends) | {queue: starts[queue] + max(1, most * count // total) for queue, count in counts.items()}


def _counts(starts: Offsets, ends: Offsets) -> dict[TopicQueue, int]:
    """Messages of queues that have some."""
    return {queue: ends[queue] - starts[queue] for queue in ends if ends[queue] > starts[queue]}


def within_bytes(starts: Offsets, ends: Offsets, most: int, end_within: EndWithin) -> dict[TopicQueue, int]:
    """*ends*, or nearer ones: each queue may give its share of *most* bytes, all together one message at least."""
    counts = _counts(starts, ends)
    total = sum(counts.values())
    near = dict(ends) | {
        queue: end_within(queue, starts[queue], ends[queue], most * count // total) for queue, count in counts.items()
    }
    if counts and all(near[queue] == starts[queue] for queue in counts):
        longest = max(counts, key=lambda queue: counts[queue])
        near[longest] += 1
    return near
