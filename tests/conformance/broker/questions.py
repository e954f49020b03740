"""Queries about a store for both sides: pulls from any offset, offsets by time, keys, ids."""

from __future__ import annotations

import random
from typing import NamedTuple

from .history import Queue, Reading
from .messages import UNSETTLED
from .rocket_client import Answer
from .sides import Side, is_inner

_FEW_ENOUGH = 32  # messages of one key: a broker's client stops before more
_KEYS = 60


class Questions(NamedTuple):
    """The queries."""

    pulls: list[tuple[Queue, int, int, str]]  # queue, offset, most, tags
    times: list[tuple[Queue, int]]
    keys: list[tuple[str, str]]
    ids: list[tuple[str, str]]


class Answers(NamedTuple):
    """The answers, in the order of the queries."""

    pulls: list[Answer]
    times: list[int]
    keys: list[list[int]]
    ids: list[Answer]


def ask(side: Side, questions: Questions) -> Answers:
    """Send every query; of a pull, keep only its messages' offsets."""
    pulls = []
    for queue, offset, most, tags in questions.pulls:
        answer = side.pull(queue, offset, most, tags)
        pulls.append({**answer, "messages": [message["queue_offset"] for message in answer["messages"]]})
    return Answers(
        pulls,
        [side.offset_by_time(queue, time_ms) for queue, time_ms in questions.times],
        [side.query_key(topic, key) for topic, key in questions.keys],
        [side.view(topic, offset_message_id) for topic, offset_message_id in questions.ids],
    )


def make_questions(reading: Reading, draw: random.Random) -> Questions:
    """Return seeded queries about the read messages, but not about topics that change by themselves."""
    pulls: list[tuple[Queue, int, int, str]] = []
    times: list[tuple[Queue, int]] = []
    ids: list[tuple[str, str]] = []
    for queue, messages in reading.items():
        if queue[0] in UNSETTLED or not messages:
            continue
        pulls += [(queue, draw.randrange(len(messages)), 7, tags) for tags in ("*", "TagA || TagC", "*")]
        stored = [message["store_timestamp_ms"] for message in messages]
        between = draw.randrange(stored[0], stored[-1] + 1)
        wanted = (stored[0] - 10, stored[0], draw.choice(stored), between, stored[-1], stored[-1] + 10)
        times += [(queue, time_ms) for time_ms in wanted]
        plain = [message for message in messages if not is_inner(message)]
        ids += [(queue[0], message["offset_message_id"]) for message in draw.sample(plain, min(3, len(plain)))]
    held = {topic_and_key for topic_and_key, places in places_of_keys(reading).items() if len(places) <= _FEW_ENOUGH}
    keys = sorted(topic_and_key for topic_and_key in held if topic_and_key[0] not in UNSETTLED)
    return Questions(pulls, times, [*draw.sample(keys, min(_KEYS, len(keys))), ("singles", "nobody")], ids)


def places_of_keys(reading: Reading) -> dict[tuple[str, str], list[int]]:
    """Return ascending physical offsets by topic and key, as a complete index must find them."""
    places: dict[tuple[str, str], set[int]] = {}
    for (topic, _), messages in reading.items():
        for message in messages:
            if not is_inner(message):
                for key in message["properties"].get("KEYS", "").split():
                    places.setdefault((topic, key), set()).add(message["physical_offset"])
    return {topic_and_key: sorted(found) for topic_and_key, found in places.items()}


def check_keys(questions: Questions, answers: Answers, reading: Reading) -> None:
    """Check that every key finds each of its messages, and no other."""
    places = places_of_keys(reading)
    for topic_and_key, told in zip(questions.keys, answers.keys, strict=True):
        assert told == places.get(topic_and_key, []), f"key {topic_and_key}"


def check_equal(questions: Questions, ours: Answers, theirs: Answers) -> None:
    """Check that the two sides agree on every query."""
    for kind in Questions._fields:
        for question, mine, other in zip(
            getattr(questions, kind), getattr(ours, kind), getattr(theirs, kind), strict=True
        ):
            assert mine == other, f"{kind}: {question}"
