"""MissingTopics: the errors about topics that do not exist, and whether they reach the program."""

from __future__ import annotations

import pytest

from tidemark.client.consumer import missing_topics
from tidemark.client.consumer.missing_topics import MISSING_PAUSE_S, MissingTopics


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(missing_topics, "time", clock)
    return clock


def test_a_topic_deleted_while_others_are_read_is_logged_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    missing = MissingTopics()
    missing.has_answered("a")
    for _ in range(5):
        clock.now += MISSING_PAUSE_S
        assert not missing.is_to_raise("a", read={"a", "b"})
    assert caplog.text.count("topic a does not exist any more") == 1


def test_a_topic_that_never_existed_raises_at_most_once_per_pause(clock: Clock) -> None:
    missing = MissingTopics()
    assert missing.is_to_raise("a", read={"a", "b"})
    assert not missing.is_to_raise("a", read={"a", "b"})
    clock.now += MISSING_PAUSE_S
    assert missing.is_to_raise("a", read={"a", "b"})


def test_the_last_topic_that_is_deleted_is_an_error(clock: Clock) -> None:
    missing = MissingTopics()
    for topic in ("a", "b"):
        missing.has_answered(topic)
    assert not missing.is_to_raise("a", read={"a", "b"})
    assert missing.is_to_raise("b", read={"a", "b"})
    clock.now += MISSING_PAUSE_S
    assert missing.is_to_raise("a", read={"a", "b"})


def test_a_topic_that_is_created_again_counts_as_existing(clock: Clock) -> None:
    missing = MissingTopics()
    for topic in ("a", "b", "a"):
        missing.has_answered(topic)
    assert not missing.is_to_raise("a", read={"a", "b"})
    missing.has_answered("a")
    assert not missing.is_to_raise("b", read={"a", "b"})
