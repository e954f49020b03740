"""Watchers: threads that read the groups' offsets and the churned topics, as an operator would."""

from __future__ import annotations

import random
import time

import httpx

from tests.soak.consumers import FORMS, Rest
from tests.soak.group_events import Committed
from tests.soak.groups.plan import SUBSCRIPTIONS
from tests.soak.history import OK, HistoryFile
from tests.soak.messages import CHURNED
from tests.soak.questions import Questions

_GAP_S = 0.5
_TIMEOUT_S = 6.0
Lags = dict[str, int]


class GroupOffsets:
    """Reads the offsets of every group by REST. Each answer goes into the history."""

    def __init__(self, url: str, history: HistoryFile) -> None:
        self._history = history
        self._http = httpx.Client(base_url=url, timeout=_TIMEOUT_S)

    def look(self, group: str) -> int | None:
        """Record the offsets of *group* and return its lag; None while it has no offset or the service is away."""
        invoked = time.monotonic()
        try:
            response = self._http.get(f"/v1/groups/{group}")
        except httpx.TransportError:
            return None
        if not response.is_success:
            return None
        answer = response.json()
        offsets = tuple((row["topic"], row["queue_id"], row["offset"]) for row in answer["queues"])
        self._history.add(Committed(group, invoked, time.monotonic(), offsets))
        return int(answer["lag"])

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


class OffsetWatcher:
    """Reads the offsets of all groups in turn."""

    def __init__(self, name: str, url: str, history: HistoryFile, rest: Rest) -> None:
        self.name = name
        self._offsets = GroupOffsets(url, history)
        self._rest = rest

    def run(self) -> None:
        """Read until the soak ends."""
        while self._rest(_GAP_S):
            for subscription in SUBSCRIPTIONS:
                self._offsets.look(subscription.group)
        self._offsets.close()


class Glancer:
    """Pulls the churned topics from the start: a message of a deleted topic must not be there."""

    def __init__(self, name: str, url: str, history: HistoryFile, rest: Rest, seed: str) -> None:
        self.name = name
        self._questions = Questions(name, url, history)
        self._rest = rest
        self._choice = random.Random(f"{seed}-{name}")
        self._cursors: dict[tuple[str, int], int | str] = {}

    def run(self) -> None:
        """Read until the soak ends."""
        queues = [(topic, queue_id) for topic, count in CHURNED.items() for queue_id in range(count)]
        while self._rest(_GAP_S / 4):
            topic, queue_id = self._choice.choice(queues)
            start = self._choice.choice((self._cursors.get((topic, queue_id), "earliest"), "earliest"))
            answer = self._questions.pull(topic, queue_id, start, form=self._choice.choice(FORMS), max_messages=20)
            if answer.outcome == OK and answer.next_offset is not None:
                self._cursors[topic, queue_id] = answer.next_offset
        self._questions.close()
