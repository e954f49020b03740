"""The queues to read, and their start and end offsets."""

from __future__ import annotations

import logging

import pytest

from tests.unit.spark.fake_log import FakeLog, FakeMessage, run_of
from tidemark.client.received_message import TopicQueue
from tidemark.errors import (
    ArgumentIllegalError,
    OffsetOutOfRangeError,
    OffsetTooSmallError,
    QueueIllegalError,
    StoreError,
    TopicNotFoundError,
)
from tidemark.spark.option_values import End
from tidemark.spark.source.log import Bounds
from tidemark.spark.source.ranges import QueueRange
from tidemark.spark.source.resolve import Resolver
from tidemark.spark.source.source_options import SourceOptions, read_options

_OLD, _NEW, _EMPTY = TopicQueue("orders", 0), TopicQueue("orders", 1), TopicQueue("orders", 2)


@pytest.fixture
def log() -> FakeLog:
    """Return a log with `orders`, whose queues have offsets 10 … 19, 0 … 4, and none, and other topics.

    The messages were stored at 1000 … 1009 and 2000 … 2004.
    """
    others = {TopicQueue(topic, queue_id): run_of(0, 1) for topic in ("orders-eu", "reorders") for queue_id in range(2)}
    return FakeLog({_OLD: run_of(10, 20, first_ms=1000), _NEW: run_of(0, 5, first_ms=2000), _EMPTY: []} | others)


def resolver(log: FakeLog, **given: str) -> Resolver:
    """Return a resolver with these options, by default for all of `orders`."""
    chosen = {"subscribe", "subscribePattern", "assign"} & given.keys()
    return Resolver(log, read_options(SourceOptions, {"path": "/store"} | ({} if chosen else _SUBSCRIBED) | given))


_SUBSCRIBED = {"subscribe": "orders"}
_FULL = '{"orders": [0, 1]}'


def starts(log: FakeLog, **given: str) -> list[int]:
    """Return the start offset of a batch for each queue."""
    made = resolver(log, **given)
    bounds = made.bounds(made.queues())
    return [made.starts(bounds, End.EARLIEST)[queue] for queue in bounds]


def stream_starts(log: FakeLog, **given: str) -> list[int]:
    """Return the start offset of a stream for each queue."""
    made = resolver(log, **given)
    bounds = made.bounds(made.queues())
    return [made.starts(bounds, End.LATEST)[queue] for queue in bounds]


def ends(log: FakeLog, **given: str) -> list[int]:
    """Return the end offset of a batch for each queue."""
    made = resolver(log, **given)
    bounds = made.bounds(made.queues())
    return [made.ends(bounds)[queue] for queue in bounds]


# ── queues ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "queues"),
    [
        ({"subscribe": "orders"}, [_OLD, _NEW, _EMPTY]),
        ({"subscribe": "reorders, orders-eu"}, [("orders-eu", 0), ("orders-eu", 1), ("reorders", 0), ("reorders", 1)]),
        ({"subscribePattern": "orders"}, [_OLD, _NEW, _EMPTY]),
        ({"subscribePattern": "re|orders-"}, []),
        ({"subscribePattern": "orders-.*|reo.*"}, [(one, n) for one in ("orders-eu", "reorders") for n in range(2)]),
        ({"assign": '{"reorders": [1], "orders": [2, 0, 2]}'}, [_OLD, _EMPTY, ("reorders", 1)]),
    ],
    ids=["one", "two", "whole name", "part of a name", "pattern", "assigned"],
)
def test_queues_are_selected_by_the_options(log: FakeLog, given: dict[str, str], queues: list[tuple[str, int]]) -> None:
    """They are sorted and unique; a pattern matches only whole names."""
    assert resolver(log, **given).queues() == queues


def test_a_pattern_finds_topics_created_later(log: FakeLog) -> None:
    """The log is asked each time."""
    made = resolver(log, subscribePattern="new.*")
    assert made.queues() == []
    log.queues[TopicQueue("newer", 0)] = []
    assert made.queues() == [("newer", 0)]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"subscribe": "orders,nope"}, TopicNotFoundError),
        ({"assign": '{"nope": [0]}'}, TopicNotFoundError),
        ({"assign": '{"orders": [0, 7]}'}, QueueIllegalError),
    ],
    ids=["topic", "assigned topic", "assigned queue"],
)
def test_a_selected_topic_or_queue_must_exist(log: FakeLog, given: dict[str, str], error: type[StoreError]) -> None:
    """The error comes before anything is read, whatever failOnDataLoss says."""
    for fail in ("true", "false"):
        with pytest.raises(error):
            resolver(log, failOnDataLoss=fail, **given).batch()


def test_bounds_are_read_from_the_log(log: FakeLog) -> None:
    """They are read for each requested queue."""
    assert resolver(log).bounds([_OLD, _EMPTY]) == {_OLD: Bounds(10, 20), _EMPTY: Bounds(0, 0)}


# ── starts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [10, 0, 0]),
        ({"startingOffsets": "earliest"}, [10, 0, 0]),
        ({"startingOffsets": "latest"}, [20, 5, 0]),
        ({"startingOffsets": '{"orders": {"0": 13, "1": 0, "2": 0}}'}, [13, 0, 0]),
        ({"startingOffsets": '{"orders": {"0": -2, "1": -1, "2": -1}}'}, [10, 5, 0]),
        ({"startingOffsets": '{"orders": {"0": 20, "1": 5, "2": 0}}'}, [20, 5, 0]),
    ],
    ids=["default", "earliest", "latest", "offsets", "ends by queue", "behind the last one"],
)
def test_reading_begins_at_the_configured_start(log: FakeLog, given: dict[str, str], expected: list[int]) -> None:
    """A start is named, or an offset for each queue."""
    assert starts(log, **given) == expected


def test_the_default_start_depends_on_the_reader(log: FakeLog) -> None:
    """A stream's default is the latest offset; an option overrides it."""
    assert stream_starts(log) == [20, 5, 0]
    assert stream_starts(log, startingOffsets="earliest") == [10, 0, 0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingTimestamp": "0"}, [10, 0]),
        ({"startingTimestamp": "1004"}, [14, 0]),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": 1009, "1": 2001}}'}, [19, 1]),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": 0, "1": 2004}}', "startingOffsets": "latest"}, [10, 4]),
        (
            {
                "startingTimestamp": "1003",
                "startingOffsetsByTimestamp": '{"orders": {"0": 1007, "1": 2002}}',
                "startingOffsets": "latest",
            },
            [13, 0],
        ),
    ],
    ids=["before all", "one time", "by queue", "before offsets", "before all others"],
)
def test_reading_begins_at_the_first_message_of_a_time(
    log: FakeLog, given: dict[str, str], expected: list[int]
) -> None:
    """startingTimestamp overrides startingOffsetsByTimestamp, which overrides startingOffsets, as in Kafka's source."""
    assert starts(log, assign=_FULL, **given) == expected


@pytest.mark.parametrize(
    "given",
    [{"startingTimestamp": "1010"}, {"startingOffsetsByTimestamp": '{"orders": {"0": 1010, "1": 0}}'}],
    ids=["one time", "by queue"],
)
def test_a_start_time_without_a_message_is_an_error_by_default(log: FakeLog, given: dict[str, str]) -> None:
    """With the strategy `latest` reading begins after the last message; other queues are not affected."""
    with pytest.raises(ArgumentIllegalError, match=r"queue 0 of orders .* 1010"):
        starts(log, assign=_FULL, **given)
    assert starts(log, assign=_FULL, startingOffsetsByTimestampStrategy="latest", **given) == [20, 0]


def test_a_start_time_in_an_empty_queue_is_its_end(log: FakeLog) -> None:
    """Its end is its start."""
    assert starts(log, startingTimestamp="0", startingOffsetsByTimestampStrategy="latest") == [10, 0, 0]


# ── ends ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [20, 5]),
        ({"endingOffsets": "latest"}, [20, 5]),
        ({"endingOffsets": '{"orders": {"0": 15, "1": -1}}'}, [15, 5]),
        ({"endingTimestamp": "1004"}, [14, 0]),
        ({"endingTimestamp": "3000"}, [20, 5]),
        ({"endingOffsetsByTimestamp": '{"orders": {"0": 3000, "1": 2003}}'}, [20, 3]),
        ({"endingOffsetsByTimestamp": '{"orders": {"0": 1001, "1": 2003}}', "endingOffsets": "latest"}, [11, 3]),
        ({"endingOffsetsByTimestamp": '{"orders": {"0": 1001, "1": 2003}}', "endingTimestamp": "1002"}, [12, 0]),
    ],
    ids=["default", "latest", "offsets", "time", "late time", "by queue", "before offsets", "before all others"],
)
def test_a_batch_ends_at_the_configured_end(log: FakeLog, given: dict[str, str], expected: list[int]) -> None:
    """The end is exclusive; for a time after all messages it is the queue's end."""
    assert ends(log, assign=_FULL, **given) == expected


def test_a_batch_ends_at_the_bounds_read_first(log: FakeLog) -> None:
    """Bounds are read once, before a time is looked up."""
    made = resolver(log, assign='{"orders": [0]}', endingTimestamp="1500")
    bounds = made.bounds(made.queues())
    log.queues[_OLD] += [FakeMessage(20, 1010), FakeMessage(21, 2000)]
    assert made.ends(bounds) == {_OLD: 20}


# ── missing offsets ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("option", ["startingOffsets", "startingOffsetsByTimestamp"])
@pytest.mark.parametrize(
    ("offsets", "named"),
    [
        ('{"orders": {"0": 1000}}', "queue 1 of orders is missing"),
        ('{"orders": {"0": 1000, "1": 0, "7": 0}}', "queue 7 of orders is not read"),
        ('{"orders": {"0": 1000, "1": 0}, "bills": {"0": 0}}', "queue 0 of bills is not read"),
    ],
    ids=["missing", "unknown queue", "unknown topic"],
)
def test_start_offsets_must_name_exactly_the_read_queues(log: FakeLog, option: str, offsets: str, named: str) -> None:
    """Kafka's source requires the same; the error names option and queue."""
    with pytest.raises(ArgumentIllegalError, match=f"option {option}: {named}") as refused:
        starts(log, assign=_FULL, **{option: offsets})
    assert refused.value.argument == option


@pytest.mark.parametrize("option", ["endingOffsets", "endingOffsetsByTimestamp"])
def test_end_offsets_must_name_exactly_the_read_queues(log: FakeLog, option: str) -> None:
    """The rule is the same as for starts."""
    with pytest.raises(ArgumentIllegalError, match=f"option {option}: queue 1 of orders is missing"):
        ends(log, assign=_FULL, **{option: '{"orders": {"0": 1000}}'})


@pytest.mark.parametrize(
    ("offset", "error", "nearest"),
    [(9, OffsetTooSmallError, 10), (0, OffsetTooSmallError, 10), (21, OffsetOutOfRangeError, 20)],
    ids=["below", "far below", "above"],
)
def test_an_offset_outside_the_bounds_is_a_loss(
    log: FakeLog, caplog: pytest.LogCaptureFixture, offset: int, error: type[StoreError], nearest: int
) -> None:
    """It is an error, or with failOnDataLoss=false a warning and the nearest offset, for starts and ends alike."""
    assigned, text = '{"orders": [0]}', f'{{"orders": {{"0": {offset}}}}}'
    with pytest.raises(error, match=str(offset)):
        starts(log, assign=assigned, startingOffsets=text)
    with pytest.raises(error, match=str(offset)):
        ends(log, assign=assigned, endingOffsets=text)
    with caplog.at_level(logging.WARNING):
        assert starts(log, assign=assigned, startingOffsets=text, failOnDataLoss="false") == [nearest]
        assert ends(log, assign=assigned, endingOffsets=text, failOnDataLoss="false") == [nearest]
    assert [str(offset) in record.getMessage() for record in caplog.records] == [True, True]


def test_a_loss_reports_the_existing_offset(log: FakeLog) -> None:
    """The offsets are facts, for programs."""
    made = resolver(log)
    with pytest.raises(OffsetTooSmallError) as below:
        made.within(_OLD, 9, Bounds(10, 20))
    with pytest.raises(OffsetOutOfRangeError) as above:
        made.within(_OLD, 21, Bounds(10, 20))
    assert (below.value.min_offset, above.value.max_offset) == (10, 20)
    assert [made.within(_OLD, offset, Bounds(10, 20)) for offset in (10, 15, 20)] == [10, 15, 20]


# ── a batch ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_reads_each_queue_from_start_to_end(log: FakeLog) -> None:
    """An empty queue has an empty range."""
    expected = [QueueRange("orders", 0, 10, 20), QueueRange("orders", 1, 0, 5), QueueRange("orders", 2, 0, 0)]
    assert resolver(log).batch() == expected


def test_a_batch_that_ends_before_it_begins_is_empty(log: FakeLog) -> None:
    """The times bound no message of one queue, while another queue has messages between them."""
    given = {"startingTimestamp": "1005", "endingTimestamp": "2002"}
    assert resolver(log, assign=_FULL, **given).batch() == [QueueRange("orders", 0, 15, 20), QueueRange(*_NEW, 0, 2)]
    offsets = {"startingOffsets": '{"orders": {"0": 15, "1": 3}}', "endingOffsets": '{"orders": {"0": 12, "1": 4}}'}
    assert resolver(log, assign=_FULL, **offsets).batch() == [QueueRange(*_OLD, 15, 15), QueueRange(*_NEW, 3, 4)]


def test_a_batch_of_given_offsets_waits_for_committed_messages(log: FakeLog) -> None:
    """Recently acknowledged messages must not look missing; without given offsets there is no wait."""
    resolver(log).batch()
    resolver(log, startingTimestamp="0", startingOffsetsByTimestampStrategy="latest").batch()
    assert log.settled == 0
    resolver(log, assign='{"orders": [0]}', endingOffsets='{"orders": {"0": 15}}').batch()
    assert log.settled == 1
