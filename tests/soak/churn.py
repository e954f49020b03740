"""Churn: a producer that fills topics, deletes them and creates them again under the same names."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tests.soak.group_events import TopicChange
from tests.soak.history import HistoryFile
from tests.soak.messages import BATCH_TOPICS, CHURNED
from tests.soak.producers import OneByOne, Pace
from tests.soak.ways import OverGrpc
from tidemark.client.wire.topic_admin import BATCH_QUEUE, Topics
from tidemark.errors import TopicExistsError, TopicNotFoundError, UnavailableError

CREATED, DELETED = "created", "deleted"
_SHORTEST_LIFE_S, _LONGEST_LIFE_S = 5.0, 20.0
_PAUSE_S = 0.2


class Churn:
    """One thread. A topic exists when the run ends: its last messages must reach their group."""

    def __init__(self, topic: str, address: str, pace: Pace, history: HistoryFile, seed: str) -> None:
        self.name = f"churn-{topic}"
        self._topic = topic
        self._topics = Topics(address)
        self._pace = pace
        self._history = history
        self._choice = random.Random(f"{seed}-{self.name}")
        self._producer = OneByOne(topic, OverGrpc(address, packed=False), [topic], pace, history, seed)

    def run(self) -> None:
        """Send, delete and create until the pace ends."""
        end = self._end()
        while self._pace.rest(self._choice):
            self._producer.send_one()
            if time.monotonic() > end:
                self._change(DELETED, lambda: self._topics.delete(self._topic), TopicNotFoundError)
                self._change(CREATED, lambda: create(self._topics, self._topic), TopicExistsError)
                end = self._end()
        self._producer.close()
        self._topics.close()

    def _end(self) -> float:
        return time.monotonic() + self._choice.uniform(_SHORTEST_LIFE_S, _LONGEST_LIFE_S)

    def _change(self, action: str, change: Callable[[], object], done: type[Exception]) -> None:
        """Repeat *change* until the writer confirms it; *done* is the answer to a repeat of a lost confirmation."""
        invoked = time.monotonic()
        while time.monotonic() < self._pace.give_up:
            try:
                change()
            except UnavailableError:
                time.sleep(_PAUSE_S)
                continue
            except done:
                pass
            self._history.add(TopicChange(self._topic, action, invoked, time.monotonic()))
            return


def create(topics: Topics, topic: str) -> None:
    """Create a churned topic with its number of queues and its queue type."""
    topics.create(topic, queues=CHURNED[topic], attributes=BATCH_QUEUE if topic in BATCH_TOPICS else {})
