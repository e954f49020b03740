"""The judge of power cuts: compares the messages that clients knew before a cut with the stored ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SYNC, ASYNC = "sync", "async"


class Place(NamedTuple):
    """Where a message is stored."""

    topic: str
    queue_id: int
    queue_offset: int


class Known(NamedTuple):
    """A message that a client knew to be at a place, and when it learned it."""

    name: str
    at: float


@dataclass
class Knowledge:
    """The clients' knowledge over all cycles so far.

    sent           names of all messages that were sent
    acknowledged   names by place, as the writer confirmed them
    read           names by place, as a reader got them
    """

    sent: set[str] = field(default_factory=set)
    acknowledged: dict[Place, Known] = field(default_factory=dict)
    read: dict[Place, Known] = field(default_factory=dict)


class Losses(NamedTuple):
    """Messages that were known before the cut and are not stored after it."""

    acknowledged: dict[Place, Known]
    read: dict[Place, Known]


def losses(knowledge: Knowledge, stored: Mapping[Place, str]) -> Losses:
    """Return the known messages that are not at their places any more."""
    return Losses(_lost(knowledge.acknowledged, stored), _lost(knowledge.read, stored))


def _lost(known: Mapping[Place, Known], stored: Mapping[Place, str]) -> dict[Place, Known]:
    return {place: one for place, one in known.items() if stored.get(place) != one.name}


def forget(knowledge: Knowledge, lost: Losses) -> None:
    """Leave out lost messages: in `async` mode their places are given to later messages."""
    for known, gone in ((knowledge.acknowledged, lost.acknowledged), (knowledge.read, lost.read)):
        for place in gone:
            del known[place]


def violations(
    mode: str, knowledge: Knowledge, lost: Losses, stored: Mapping[Place, str], *, cut_at: float, window_s: float
) -> Iterator[str]:
    """Report broken promises after one cut.

    Args:
        mode: sync or async.
        knowledge: includes the lost messages.
        stored: every message that can be read after the restart.
        cut_at: monotonic time of the cut. An answer that arrived after it raced with the cut and is not counted.
        window_s: the age from which `async` may not lose a message.
    """
    yield from _invented(knowledge.sent, stored)
    yield from _holes(stored)
    limit = cut_at if mode == SYNC else cut_at - window_s
    for kind, gone in (("acknowledged", lost.acknowledged), ("read", lost.read)):
        counted = {place: known for place, known in gone.items() if known.at < limit}
        if counted:
            ages = sorted(cut_at - known.at for known in counted.values())
            place, known = next(iter(counted.items()))
            yield (
                f"{len(counted)} {kind} messages are lost, {ages[0]:.3f} to {ages[-1]:.3f} s before the cut: "
                f"{known.name} at {place}"
            )


def _invented(sent: Collection[str], stored: Mapping[Place, str]) -> Iterator[str]:
    for place, name in stored.items():
        if name not in sent:
            yield f"{place} has {name}, which was never sent"
            break
    name, count = Counter(stored.values()).most_common(1)[0] if stored else ("", 0)
    if count > 1:
        yield f"{name} is stored {count} times"


def _holes(stored: Mapping[Place, str]) -> Iterator[str]:
    ends = Counter((place.topic, place.queue_id) for place in stored)
    for (topic, queue_id), count in ends.items():
        missing = [i for i in range(count) if Place(topic, queue_id, i) not in stored]
        if missing:
            yield f"{topic}/{queue_id} has {count} messages, but none at {missing[:5]}"
