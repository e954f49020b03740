"""The kept parts of a connection's pulls, and the number of queues for which they are kept."""

from __future__ import annotations

import pytest

from services.indexer.query.pull.pulled import AnswerLimits
from services.indexer.query.remoting import repeated_pulls as module
from services.indexer.query.remoting.repeated_pulls import ParsedPull, RepeatedPulls
from tidemark.access.right import READING, on_topic
from tidemark.remoting.pulling import PULL_REQUEST, PullMessageRequest

LIMITS = AnswerLimits(1, 1, 0, None, whole_records=True)


def fields(topic: str = "orders", queue_id: int = 0, offset: int = 0, subscription: str = "*") -> dict[str, str]:
    asked = PullMessageRequest("g", topic, queue_id, offset, 32, subscription=subscription)
    return PULL_REQUEST.write(asked)


def parsed(topic: str = "orders") -> ParsedPull:
    asked = PULL_REQUEST.read(fields(topic))
    return ParsedPull(asked, on_topic(asked.topic, *READING), LIMITS)


@pytest.fixture
def repeated() -> RepeatedPulls:
    return RepeatedPulls()


def test_a_repeated_pull_may_have_another_offset(repeated: RepeatedPulls) -> None:
    kept = parsed()
    repeated.keep(fields(offset=5), kept)
    for offset in (5, 6, 1 << 40, -1):
        assert repeated.find(fields(offset=offset)) == (kept, offset)


@pytest.mark.parametrize("change", [{"topic": "other"}, {"queueId": "1"}, {"maxMsgNums": "33"}, {"token": "t"}])
def test_a_pull_with_another_field_is_not_a_repeated_one(repeated: RepeatedPulls, change: dict[str, str]) -> None:
    repeated.keep(fields(), parsed())
    assert repeated.find(fields() | change) is None
    assert repeated.find(fields()) is not None


@pytest.mark.parametrize("text", ["", "x", "1.0", "9223372036854775808", None])
def test_a_pull_with_an_illegal_offset_is_not_found(repeated: RepeatedPulls, text: str | None) -> None:
    repeated.keep(fields(), parsed())
    asked = fields()
    if text is None:
        del asked["queueOffset"]
    else:
        asked["queueOffset"] = text
    assert repeated.find(asked) is None


def test_the_fields_of_a_request_are_not_changed(repeated: RepeatedPulls) -> None:
    first, second = fields(offset=1), fields(offset=2)
    repeated.keep(first, parsed())
    repeated.find(second)
    assert (first["queueOffset"], second["queueOffset"]) == ("1", "2")


def test_each_queue_has_its_own_last_pull(repeated: RepeatedPulls) -> None:
    for topic in ("orders", "other"):
        repeated.keep(fields(topic), parsed(topic))
    for topic in ("orders", "other"):
        assert repeated.find(fields(topic, offset=7)) == (parsed(topic), 7)


def test_a_long_request_is_not_kept(repeated: RepeatedPulls) -> None:
    """Memory for it is not for a client to decide."""
    for length, is_kept in ((module._MOST_TEXT // 2, True), (module._MOST_TEXT, False)):
        asked = fields(subscription="s" * length)
        repeated.keep(asked, parsed())
        assert (repeated.find(asked) is not None) == is_kept


def test_a_long_offset_is_not_kept(repeated: RepeatedPulls) -> None:
    repeated.keep(fields(), parsed())
    assert repeated.find(fields() | {"queueOffset": "0" * 1_000 + "7"}) is None
    assert len(repeated._known["orders", "0"][0]["queueOffset"] or "") < 100


def test_the_pulls_of_a_limited_number_of_queues_are_kept(repeated: RepeatedPulls) -> None:
    for queue_id in range(3 * module._MOST_QUEUES):
        repeated.keep(fields(queue_id=queue_id), parsed())
        assert repeated.find(fields(queue_id=queue_id)) is not None
    assert len(repeated._known) <= module._MOST_QUEUES
