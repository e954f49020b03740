"""Dense queues, whole batches."""

from __future__ import annotations

from collections.abc import Iterator

from tests.soak.facts import Facts, Queue
from tests.soak.history import Append, Seen


def holes(facts: Facts) -> Iterator[str]:
    """Report offsets that a pull skipped, or that are missing at the end."""
    for answer in facts.right:
        if answer.kind != "pull" or not answer.seen:
            continue
        offsets = [seen.queue_offset for seen in answer.seen]
        wanted = offsets[0] if answer.requested_offset is None else answer.requested_offset  # None: from the earliest
        if offsets != list(range(wanted, wanted + len(offsets))):
            name = f"{answer.topic}/{answer.queue_id}"
            yield f"{answer.client} pulled {name} from {answer.requested_offset} on and got {offsets}"
    for queue, messages in facts.final.items():
        first = min(messages) if queue.topic in facts.churned else 0
        missing = set(range(first, max(messages) + 1)) - messages.keys()
        if missing:
            yield f"{queue} has no message at {sorted(missing)[:10]}"


def torn(facts: Facts) -> Iterator[str]:
    """Report a batch that is incomplete at the end, or whose messages are not adjacent with one store time."""
    places: dict[str, tuple[Queue, Seen]] = {
        seen.content: (queue, seen) for queue, messages in facts.final.items() for seen in messages.values()
    }
    for append in facts.appends:
        found = [places[content] for content in append.contents if content in places]
        if found and not _is_whole(append, found):
            rows = [(queue.queue_id, seen.queue_offset, seen.store_ms) for queue, seen in found]
            yield f"batch {append.contents[0]} of {len(append.contents)} messages is there as {rows}"


def _is_whole(append: Append, found: list[tuple[Queue, Seen]]) -> bool:
    queue, first = found[0]
    return len(found) in (len(append.contents), 0) and all(
        (where, seen.queue_offset, seen.store_ms) == (queue, first.queue_offset + i, first.store_ms)
        for i, (where, seen) in enumerate(found)
    )
