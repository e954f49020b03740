"""History: the messages that clients have sent and read, and a check of a log against them, of its own code."""

from __future__ import annotations

import enum
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Place = tuple[str, int, int]  # topic, queue id, queue offset


class Outcome(enum.Enum):
    """The outcome of a message, as its sender knows it."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"  # certainly not stored
    OPEN = "open"  # perhaps stored


class Sent(NamedTuple):
    """A message. Times: of a clock that all clients share, in seconds. place: if acknowledged."""

    key: str
    began_s: float
    ended_s: float
    outcome: Outcome
    place: Place | None = None


class Read(NamedTuple):
    """A message that a reader of *member* was shown."""

    member: str
    key: str
    place: Place


class History:
    """Thread-safe."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.read: list[Read] = []
        self._lock = threading.Lock()

    def add(self, *events: Sent | Read) -> None:
        """Note events."""
        with self._lock:
            for event in events:
                self.sent.append(event) if isinstance(event, Sent) else self.read.append(event)

    def acknowledged(self) -> int:
        """Return the number of acknowledged messages."""
        with self._lock:
            return sum(one.outcome is Outcome.ACKNOWLEDGED for one in self.sent)


def findings(history: History, stored: Iterable[tuple[str, Place]]) -> list[str]:
    """Return what contradicts the messages that are *stored* at the end: (key, place) of each. Empty: nothing."""
    places: dict[str, list[Place]] = defaultdict(list)
    for key, place in stored:
        places[key].append(place)
    return [
        *_of_each_message(history.sent, places),
        *_reordered(history.sent),
        *_of_reads(history.read, places),
    ]


def _of_each_message(sent: list[Sent], places: Mapping[str, list[Place]]) -> Iterable[str]:
    for one in sent:
        found = places.get(one.key, [])
        if one.outcome is Outcome.ACKNOWLEDGED:
            if not found:
                yield f"lost: {one.key} was acknowledged at {one.place}"
            elif one.place not in found:
                yield f"moved: {one.key} was acknowledged at {one.place}, and is at {found}"
        if one.outcome is Outcome.REFUSED and found:
            yield f"refused yet stored: {one.key} is at {found}"
        if len(found) > 1:
            yield f"doubled: {one.key} is at {found}"
    known = {one.key for one in sent}
    yield from (f"phantom: {key} was never sent" for key in places if key not in known)
    taken = [one.place for one in sent if one.place is not None]
    yield from (f"two messages were acknowledged at {place}" for place, count in Counter(taken).items() if count > 1)


def _reordered(sent: list[Sent]) -> Iterable[str]:
    """A message that was acknowledged before another one was sent has the lower offset in their queue."""
    queues: dict[tuple[str, int], list[Sent]] = defaultdict(list)
    for one in sent:
        if one.place is not None:
            queues[one.place[:2]].append(one)
    for in_queue in queues.values():
        in_queue.sort(key=lambda one: one.place or ("", 0, 0))
        latest: Sent | None = None  # of those with lower offsets, the one that was sent last
        for one in in_queue:
            if latest is not None and one.ended_s < latest.began_s:
                yield f"reordered: {one.key} was acknowledged before {latest.key} was sent, and is behind it"
            if latest is None or one.began_s > latest.began_s:
                latest = one


def _of_reads(read: list[Read], places: Mapping[str, list[Place]]) -> Iterable[str]:
    for one in dict.fromkeys(read):
        if one.place not in places.get(one.key, []):
            yield f"read and gone: {one.member} showed {one.key} at {one.place}"
