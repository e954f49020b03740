from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.indexer.query.config import QuerySettings
from services.indexer.query.pull.pulled import AnswerLimits, Pulled
from services.indexer.query.pull.queue_pull import QueuePull
from services.indexer.query.schema.query_arguments import PullLimits
from services.indexer.query.state.service_state import ServiceState
from tests.built_store import BuiltStore
from tidemark.errors import OffsetOutOfRangeError, OffsetTooSmallError, TopicNotFoundError
from tidemark.read.look import one_look
from tidemark.read.messages.body import AnswerFullError
from tidemark.read.pull import PullStatus
from tidemark.read.store_moment import StoreMoment
from tidemark.read.store_reader import StoreReader

MESSAGES = 5


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    store = BuiltStore(tmp_path)
    store.topic("orders", queues=2)
    for number in range(MESSAGES):
        store.append("orders", b"%d" % number)
    store.publish()
    return store


@pytest.fixture
def pull_of(built: BuiltStore) -> Callable[..., QueuePull]:
    settings = QuerySettings(store_root=built.root)
    state = cast(ServiceState, SimpleNamespace(settings=settings, store=StoreReader(built.root)))

    def make(offset: str, *, queue_id: int = 0, **limits: Any) -> QueuePull:
        asked = PullLimits(**limits)
        return QueuePull(state, "orders", queue_id, offset, AnswerLimits.of(asked, settings, whole_records=False))

    return make


def offsets(pulled: Pulled) -> list[int]:
    return [int(offset) for part in pulled.result.parts for offset in part.messages["queue_offset"]]


@pytest.mark.parametrize(("offset", "expected"), [("earliest", range(5)), ("0", range(5)), ("3", range(3, 5))])
def test_a_pull_begins_at_the_requested_offset(pull_of: Callable[..., QueuePull], offset: str, expected: range) -> None:
    pulled = pull_of(offset).look()
    assert (pulled.result.status, offsets(pulled)) == (PullStatus.FOUND, list(expected))
    assert pulled.requested_offset == expected.start


def test_latest_waits_for_the_next_message(built: BuiltStore, pull_of: Callable[..., QueuePull]) -> None:
    pull = pull_of("latest")
    assert pull.look().is_worth_waiting
    built.append("orders", b"new")
    built.publish()
    assert offsets(pull.look()) == [MESSAGES]


def test_a_pull_returns_at_most_max_messages(pull_of: Callable[..., QueuePull]) -> None:
    pulled = pull_of("1", max_messages=2).look()
    assert (offsets(pulled), pulled.result.next_offset) == ([1, 2], 3)


def test_queue_growth_is_detected_without_a_read(built: BuiltStore, pull_of: Callable[..., QueuePull]) -> None:
    pull = pull_of(str(MESSAGES))
    now = StoreMoment(pull.look().watermark, 0)
    assert not pull.has_grown(now)
    built.append("orders")
    built.publish()
    store = StoreReader(built.root)
    assert pull.has_grown(StoreMoment(store.watermark(), store.log_min))


def test_an_offset_at_the_known_end_needs_no_read(pull_of: Callable[..., QueuePull]) -> None:
    assert not pull_of("latest").is_at_known_end(), "nothing was read yet"
    pull_of("0").look()
    assert pull_of("latest").is_at_known_end()
    assert pull_of(str(MESSAGES)).is_at_known_end()
    assert not pull_of(str(MESSAGES - 1)).is_at_known_end()
    assert not pull_of("earliest").is_at_known_end()


def test_an_offset_above_the_end_is_refused_with_the_bounds(pull_of: Callable[..., QueuePull]) -> None:
    pull = pull_of(str(MESSAGES + 10))
    with pytest.raises(OffsetOutOfRangeError) as refused:
        pull.answer(pull.look(), offsets)
    facts = refused.value.facts
    assert (facts["min_offset"], facts["max_offset"], facts["requested_offset"]) == (0, MESSAGES, MESSAGES + 10)


def test_an_offset_of_a_deleted_topic_is_refused_with_the_first_of_the_new_one(
    built: BuiltStore, pull_of: Callable[..., QueuePull]
) -> None:
    built.delete_topic("orders")
    built.topic("orders", queues=2)
    pull = pull_of("0")
    with pytest.raises(OffsetTooSmallError) as refused:
        pull.answer(pull.look(), offsets)
    assert (refused.value.facts["first_offset"], refused.value.facts["next_offset"]) == (MESSAGES, MESSAGES)


def test_a_deleted_topic_ends_a_waiting_pull(built: BuiltStore, pull_of: Callable[..., QueuePull]) -> None:
    pull = pull_of("latest")
    now = StoreMoment(pull.look().watermark, 0)
    assert not pull.has_grown(now)
    built.delete_topic("orders")
    with pytest.raises(TopicNotFoundError):
        pull.has_grown(now)
    with pytest.raises(TopicNotFoundError):
        pull.look()


def test_a_look_reads_the_topics_once_and_the_next_one_notices_a_change(
    built: BuiltStore, pull_of: Callable[..., QueuePull]
) -> None:
    """One look checks a thousand waiting requests."""
    store, watermark = StoreReader(built.root), pull_of("latest").look().watermark
    with one_look():
        moment = StoreMoment.of_look(store, watermark)
        built.topic("more")
        assert StoreMoment.of_look(store, watermark) == moment
    assert moment.catalog is not None
    assert "more" not in moment.catalog.topics
    with one_look():
        later = StoreMoment.of_look(store, watermark)
    assert later.catalog is not None
    assert "more" in later.catalog.topics


def test_an_answer_above_the_limit_is_rebuilt_with_fewer_messages(pull_of: Callable[..., QueuePull]) -> None:
    made: list[int] = []

    def make(pulled: Pulled) -> list[int]:
        made.append(pulled.result.message_count)
        if pulled.result.message_count > 1:
            raise AnswerFullError
        return offsets(pulled)

    pull = pull_of("0")
    assert pull.answer(pull.look(), make) == [0]
    assert made == [5, 2, 1]
