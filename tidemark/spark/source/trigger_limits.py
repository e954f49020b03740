"""Limits of one trigger, shared by the queues in proportion to their available messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemark.client.received_message import TopicQueue

Offsets = Mapping[TopicQueue, int]
EndWithin = Callable[[TopicQueue, int, int, int], int]  # queue, start, end, max_bytes


def within_messages(starts: Offsets, ends: Offsets, most: int) -> dict[TopicQueue, int]:
    """Return ends so that exactly *most* messages are taken if more are available.

    Each queue gives its share, rounded down. The remainder is distributed one by one to the queues whose share was
    rounded, first to those that would otherwise give nothing. If these are more than the remainder, they take turns:
    the number of messages read so far, which increases with each trigger, determines the first one.
    """
    counts = _counts(starts, ends)
    total = sum(counts.values())
    if total <= most:
        return dict(ends)
    shares = {queue: most * count // total for queue, count in counts.items()}
    turn = _in_turn([queue for queue in sorted(counts) if most * counts[queue] % total], sum(starts.values()))
    turn.sort(key=lambda queue: shares[queue] > 0)
    for queue in turn[: most - sum(shares.values())]:
        shares[queue] += 1
    return dict(ends) | {queue: starts[queue] + share for queue, share in shares.items()}


def _in_turn(queues: list[TopicQueue], read: int) -> list[TopicQueue]:
    first = read % len(queues) if queues else 0
    return queues[first:] + queues[:first]


def _counts(starts: Offsets, ends: Offsets) -> dict[TopicQueue, int]:
    """Return the number of messages of each queue that has some."""
    return {queue: ends[queue] - starts[queue] for queue in ends if ends[queue] > starts[queue]}


def within_bytes(starts: Offsets, ends: Offsets, most: int, end_within: EndWithin) -> dict[TopicQueue, int]:
    """Return ends so that each queue gives at most its share of *most* bytes, and all together at least one message."""
    counts = _counts(starts, ends)
    total = sum(counts.values())
    near = dict(ends) | {
        queue: end_within(queue, starts[queue], ends[queue], most * count // total) for queue, count in counts.items()
    }
    if counts and all(near[queue] == starts[queue] for queue in counts):
        longest = max(counts, key=lambda queue: counts[queue])
        near[longest] += 1
    return near
