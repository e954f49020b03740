"""The end of a soak: wait until every group has every message, then read the dead letters."""

from __future__ import annotations

import time

from tests.soak.checker import DRAINED, RULES
from tests.soak.facts import Facts
from tests.soak.group_events import DeadLetter, Handed
from tests.soak.group_watchers import GroupOffsets
from tests.soak.groups.plan import SUBSCRIPTIONS
from tests.soak.history import HistoryFile, read_histories
from tests.soak.messages import content_of_body
from tidemark.client import Consumer
from tidemark.errors import TopicNotFoundError
from tidemark.format.topic_name import DEAD_LETTER_PREFIX

_LONGEST_S = 300.0
_WITHOUT_PROGRESS_S = 60.0  # longer than the longest pause between two attempts, on a busy machine
_PAUSE_S = 3.0


def drain_groups(url: str, history: HistoryFile) -> None:
    """Block until no group lacks a message, or until nothing more arrives; the judge reports the rest."""
    offsets = GroupOffsets(url, history)
    deadline = time.monotonic() + _LONGEST_S
    least, since = None, time.monotonic()
    while time.monotonic() < deadline:
        lags = [offsets.look(subscription.group) for subscription in SUBSCRIPTIONS]
        read_dead_letters(url, history)
        missing = _missing(history) + sum(lag or 0 for lag in lags)
        if missing == 0:
            break
        if least is None or missing < least:
            least, since = missing, time.monotonic()
        elif time.monotonic() - since > _WITHOUT_PROGRESS_S:
            break
        time.sleep(_PAUSE_S)
    offsets.close()


def _missing(history: HistoryFile) -> int:
    facts = Facts(read_histories(history.path.parent))
    return sum(1 for rule in DRAINED for _ in RULES[rule](facts))


def read_dead_letters(url: str, history: HistoryFile) -> None:
    """Record every message of the groups' dead letter topics."""
    for subscription in SUBSCRIPTIONS:
        if subscription.max_attempts:
            try:
                _read(url, f"{DEAD_LETTER_PREFIX}{subscription.group}", subscription.group, history)
            except TopicNotFoundError:  # no message has failed so often
                continue


def _read(url: str, topic: str, group: str, history: HistoryFile) -> None:
    with Consumer(topic, url=url) as consumer:
        while messages := consumer.poll(2):
            for message in messages:
                handed = Handed(
                    topic,
                    message.queue_id,
                    message.queue_offset,
                    content_of_body(message.body),
                    message.reconsume_times,
                    message.message_id or "",
                )
                history.add(DeadLetter(group, handed))
