"""A deleted topic is gone, and a topic that was created again under its name is new."""

from __future__ import annotations

from collections.abc import Iterator

from tests.soak.facts import Facts, Queue
from tests.soak.group_events import Delivery


def shown_after_deletion(facts: Facts) -> Iterator[str]:
    """Report answers with a message of a topic whose deletion was confirmed before the question."""
    reported: set[str] = set()
    for queue, seen, answer in facts.sightings():
        append = facts.sent.get(seen.content)
        if append is None or seen.content in reported:
            continue
        gone = next((one for one in facts.deletions.get(append.topic, ()) if one.completed > append.invoked), None)
        if gone is not None and gone.completed < answer.invoked:
            reported.add(seen.content)
            yield (
                f"{answer.client} ({answer.kind}) asked at {answer.invoked:.3f} and read {seen.content} in {queue}, "
                f"which was deleted at {gone.completed:.3f}"
            )


def handed_out_after_newer(facts: Facts) -> Iterator[str]:
    """Report members that got a message of a deleted topic after a message of its successor."""
    for client, events in facts.positions.items():
        newest: dict[Queue, int] = {}
        for delivery in events:
            for message in delivery.messages if isinstance(delivery, Delivery) else ():
                append = facts.sent.get(message.content)
                if append is None or append.topic not in facts.deletions:
                    continue
                queue, incarnation = Queue(message.topic, message.queue_id), facts.incarnation(append)
                if incarnation < newest.get(queue, 0):
                    yield f"{client} got {message.content} of {queue}, deleted, after messages of its successor"
                newest[queue] = max(incarnation, newest.get(queue, 0))
