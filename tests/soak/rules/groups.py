"""Consumer groups: each gets every message, in order, and commits no message that it was not given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from math import inf

from tests.soak.facts import Facts, Queue
from tests.soak.group_events import Delivery, Handed, Handled, Positioned

GroupQueue = tuple[str, Queue]


def handed_out(facts: Facts) -> Iterator[tuple[Delivery | Handled, float, Handed]]:
    """Yield every message that a member got, with the time from which the group may commit it."""
    for delivery in facts.deliveries:
        for message in delivery.messages:
            yield delivery, delivery.completed, message
    for handled in facts.handled:
        yield handled, handled.at, handled.message


def never_handed_out(facts: Facts) -> Iterator[str]:
    """Report acknowledged messages of existing topics that a subscribed group never got."""
    got: defaultdict[str, set[str]] = defaultdict(set)
    for event, _, message in handed_out(facts):
        got[event.group].add(message.content)
    for dead in facts.dead_letters:
        got[dead.group].add(dead.message.content)
    for group, subscription in facts.subscriptions.items():
        for append in facts.kept:
            if append.topic in subscription.topics:
                for i, content in enumerate(append.contents):
                    if content not in got[group]:
                        place = f"{append.topic}/{append.queue_id}/{(append.queue_offset or 0) + i}"
                        yield f"group {group} never got {content}, acknowledged at {place}"


def invented(facts: Facts) -> Iterator[str]:
    """Report messages that a group got although no producer sent them, or from a topic that it did not name."""
    reported: set[tuple[str, str]] = set()
    letters = ((dead, 0.0, dead.message) for dead in facts.dead_letters)
    for event, _, message in (*handed_out(facts), *letters):
        append = facts.sent.get(message.content)
        subscription = facts.subscriptions.get(event.group)
        topics = subscription.topics if subscription is not None else ()
        if append is None:
            why = "was never sent with this body"
        elif append.topic not in topics:
            why = f"was sent to {append.topic}"
        elif message.attempt == 0 and Queue(append.topic, append.queue_id) != Queue(message.topic, message.queue_id):
            why = f"was sent to {append.topic}/{append.queue_id}"
        else:
            continue
        if (event.group, message.content) not in reported:
            reported.add((event.group, message.content))
            yield f"group {event.group} got {message.content} from {message.topic}/{message.queue_id}: it {why}"


def committed_ahead(facts: Facts) -> Iterator[str]:
    """Report group offsets that pass over a message which the group had not got when the service reported them."""
    known = _times_of_prefixes(facts)
    for commit in facts.commits:
        for topic, queue_id, offset in commit.offsets:
            times = known.get((commit.group, Queue(topic, queue_id)), [])
            first = _first_not_handed_out(times, offset, commit.completed)
            if first is not None:
                yield (
                    f"group {commit.group} had {offset} on record for {topic}/{queue_id} at {commit.completed:.3f}, "
                    f"but had not got the message at {first}"
                )
                break


def _first_not_handed_out(times: list[float], offset: int, at: float) -> int | None:
    """Return the first queue offset below *offset* that was not handed out by *at*; None if there is none."""
    if offset == 0 or (offset <= len(times) and times[offset - 1] <= at):
        return None
    return next((i for i, time in enumerate(times[:offset]) if time > at), len(times))


def _times_of_prefixes(facts: Facts) -> dict[GroupQueue, list[float]]:
    """Return, by group and queue, for each queue offset the time when everything up to it had been handed out.

    Offsets of a deleted topic count as handed out when its deletion begins: the group continues at the next topic's
    first offset, whether or not a member gets old messages later.
    """
    first: defaultdict[GroupQueue, dict[int, float]] = defaultdict(dict)
    for event, time, message in handed_out(facts):
        offsets = first[event.group, Queue(message.topic, message.queue_id)]
        offsets[message.queue_offset] = min(time, offsets.get(message.queue_offset, inf))
    for queue, deleted in _deletion_times(facts).items():
        for group, subscription in facts.subscriptions.items():
            if queue.topic in subscription.topics:
                offsets = first[group, queue]
                offsets.update({offset: min(time, offsets.get(offset, inf)) for offset, time in deleted.items()})
    return {
        key: list(accumulate((times.get(offset, inf) for offset in range(max(times) + 1)), max))
        for key, times in first.items()
    }


def _deletion_times(facts: Facts) -> dict[Queue, dict[int, float]]:
    """Return by queue when the deletion of its topic began, for each offset below the first existing one."""
    times: defaultdict[Queue, dict[int, float]] = defaultdict(dict)
    gone = [append for append in facts.acknowledged if facts.is_gone(append)]
    for append in sorted(gone, key=lambda append: append.queue_offset or 0):
        known = times[Queue(append.topic, append.queue_id)]
        deletions = facts.deletions[append.topic]
        began = next(change.invoked for change in deletions if change.completed > append.invoked)
        known.update(dict.fromkeys(range(len(known), (append.queue_offset or 0) + len(append.contents)), began))
    return times


def out_of_order(facts: Facts) -> Iterator[str]:
    """Report a member that did not continue a queue at the offset after the last one, or at the offset it sought."""
    for client, events in facts.positions.items():
        wanted: dict[Queue, int | None] = {}
        for event in events:
            if isinstance(event, Positioned):
                wanted[Queue(event.topic, event.queue_id)] = event.queue_offset
                continue
            for message in event.messages:
                queue = Queue(message.topic, message.queue_id)
                expected = wanted.get(queue)
                if expected is not None and not _continues(message, expected, facts):
                    yield (
                        f"{client} ({event.group}, {event.form}) got {queue} at {message.queue_offset} at "
                        f"{event.completed:.3f}, expected {expected}"
                    )
                wanted[queue] = message.queue_offset + 1


def _continues(message: Handed, expected: int, facts: Facts) -> bool:
    """Return True if it does. A churned topic may continue at a later offset, after its re-creation."""
    if message.topic in facts.churned:
        return message.queue_offset >= expected
    return message.queue_offset == expected
