"""Filters exclude many messages, and no matching one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from tests.unit.spark.fake_log import FakeLog, FakeMessage, run_of
from tidemark.client.received_message import TopicQueue
from tidemark.spark.source.kafka_rows import KAFKA_NAMES
from tidemark.spark.source.pruning import Wanted
from tidemark.spark.source.ranges import QueueRange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS = 1_767_225_600_000
_QUEUE = TopicQueue("a", 0)
_ORDERED: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
_OF_TEXT: dict[type[Filter], Callable[[str, str], bool]] = {
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: str.__contains__,
}


def at(store_ms: int, microseconds: int = 0) -> datetime:
    """Return a time as Spark passes it."""
    return _EPOCH + timedelta(milliseconds=store_ms, microseconds=microseconds)


def is_true(one: Any, row: dict[str, Any]) -> bool | None:
    """Return SQL's truth value of a filter for a row; None for unknown."""
    if isinstance(one, Not):
        inside = is_true(one.child, row)
        return None if inside is None else not inside
    value = row[one.attribute[0]]
    if isinstance(one, IsNull | IsNotNull):
        return (value is None) is isinstance(one, IsNull)
    if isinstance(one, EqualNullSafe):
        return bool(value == one.value)
    if value is None or one.value is None:
        return None
    if isinstance(one, In):
        return value in one.value
    return (_ORDERED | _OF_TEXT)[type(one)](value, one.value)


def row_of(queue: TopicQueue, message: FakeMessage) -> dict[str, Any]:
    """Return the columns that filters of these tests use."""
    return {
        "topic": queue.topic,
        "queue_id": queue.queue_id,
        "queue_offset": message.queue_offset,
        "store_timestamp": at(message.store_ms),
        "born_timestamp": at(message.store_ms - 7),
        "tag": message.tag,
    }


# ── no matching message is excluded ─────────────────────────────────────────────────────────────────────────────────

_TAGS = [None, "A", "B", "AB", " A", "A || B", "*", ""]
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["a", "b", "ab", "nope"]),
    "queue_id": st.integers(-1, 3),
    "queue_offset": st.integers(-1, 20),
    "store_timestamp": st.builds(at, st.integers(_FIRST_MS - 10, _FIRST_MS + 30), st.sampled_from([0, 1, 400, 999])),
    "born_timestamp": st.builds(at, st.integers(_FIRST_MS - 10, _FIRST_MS + 30)),
    "tag": st.sampled_from(["A", "B", "AB", " A", "A || B", "*", "", "nope"]),
}


def _several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw values of an `IN`: a tuple, or a list as in Spark's worker."""
    lists = st.lists(values, min_size=1, max_size=3)
    return lists | lists.map(tuple)


@st.composite
def _filters(draw: st.DrawFn) -> Filter:
    """Draw any filter that Spark may push down on one of the columns."""
    column = draw(st.sampled_from(sorted(_VALUES)))
    kinds: list[Any] = [*_ORDERED, EqualNullSafe, In, IsNull, IsNotNull]
    kind = draw(st.sampled_from([*kinds, *_OF_TEXT] if column in ("topic", "tag") else kinds))
    if kind in (IsNull, IsNotNull):
        one = kind((column,))
    elif kind is In:
        one = In((column,), draw(_several(_VALUES[column])))
    else:
        null = st.none() if kind in (EqualTo, EqualNullSafe) else st.nothing()
        one = kind((column,), draw(_VALUES[column] | null))
    return Not(one) if draw(st.integers(0, 5)) == 0 else one


@st.composite
def _messages(draw: st.DrawFn, slack_ms: int) -> list[FakeMessage]:
    """Draw a queue's messages; a time is at most slack_ms below an earlier one."""
    offset, latest = draw(st.integers(0, 10)), _FIRST_MS
    messages: list[FakeMessage] = []
    for step, back, tag in draw(
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, slack_ms), st.sampled_from(_TAGS)), max_size=10)
    ):
        latest += step
        messages.append(FakeMessage(offset + len(messages), latest - back, tag))
    return messages


@st.composite
def _logs(draw: st.DrawFn) -> tuple[FakeLog, int]:
    """Draw a log of two topics, and the amount by which clocks were set back in it."""
    slack_ms = draw(st.sampled_from([0, 1, 6]))
    queues = [TopicQueue(topic, queue_id) for topic in ("a", "ab") for queue_id in range(2)]
    return FakeLog({queue: draw(_messages(slack_ms)) for queue in queues}, halving=draw(st.booleans())), slack_ms


@given(made=_logs(), filters=st.lists(_filters(), max_size=4), cut=st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_pruning_omits_no_matching_message(
    made: tuple[FakeLog, int], filters: list[Filter], cut: tuple[int, int]
) -> None:
    """Every message of a range for which all filters are true is in the reduced range, and carries a requested tag."""
    log, slack_ms = made
    wanted = Wanted().and_filters(filters)
    for queue, messages in log.queues.items():
        bounds = log.bounds(queue)
        whole = QueueRange(*queue, bounds.min_offset + cut[0], bounds.max_offset - cut[1])
        left = wanted.of_range(whole, log, slack_ms=slack_ms)
        offsets = range(0) if left is None else range(left.start, left.end)
        assert left is None or (left.queue == queue and whole.start <= left.start < left.end <= whole.end)
        for message in messages:
            if whole.start <= message.queue_offset < whole.end and all(
                is_true(one, row_of(queue, message)) for one in filters
            ):
                assert message.queue_offset in offsets
                assert wanted.tags is None or message.tag in wanted.tags


# ── many messages are excluded ──────────────────────────────────────────────────────────────────────────────────────


def left(*filters: Filter, slack_ms: int = 0, queue: TopicQueue = _QUEUE) -> tuple[int, int] | None:
    """Return the reduced range of *queue*, offsets 10 … 19, one stored each millisecond."""
    log = FakeLog({queue: run_of(10, 20, first_ms=_FIRST_MS)})
    found = Wanted().and_filters(filters).of_range(QueueRange(*queue, 10, 20), log, slack_ms=slack_ms)
    return None if found is None else (found.start, found.end)


def name_of(value: object) -> str:
    """Return the name of a parameter; a set's members are sorted in it."""
    return str(sorted(value, key=str)) if isinstance(value, set | frozenset) else str(value)


@pytest.mark.parametrize(
    ("one", "offsets"),
    [
        (EqualTo(("queue_offset",), 13), (13, 14)),
        (GreaterThan(("queue_offset",), 13), (14, 20)),
        (GreaterThanOrEqual(("queue_offset",), 13), (13, 20)),
        (LessThan(("queue_offset",), 13), (10, 13)),
        (LessThanOrEqual(("queue_offset",), 13), (10, 14)),
        (In(("queue_offset",), (17, 12, 14)), (12, 18)),
        (LessThan(("queue_offset",), 10), None),
        (GreaterThan(("queue_offset",), 19), None),
        (EqualTo(("store_timestamp",), at(_FIRST_MS + 3)), (13, 14)),
        (GreaterThan(("store_timestamp",), at(_FIRST_MS + 3)), (14, 20)),
        (GreaterThanOrEqual(("store_timestamp",), at(_FIRST_MS + 3)), (13, 20)),
        (LessThan(("store_timestamp",), at(_FIRST_MS + 3)), (10, 13)),
        (LessThanOrEqual(("store_timestamp",), at(_FIRST_MS + 3)), (10, 14)),
        (In(("store_timestamp",), (at(_FIRST_MS + 7), at(_FIRST_MS + 2))), (12, 18)),
        (GreaterThan(("store_timestamp",), at(_FIRST_MS + 9)), None),
        (LessThan(("store_timestamp",), at(_FIRST_MS)), None),
    ],
    ids=name_of,
)
def test_pruning_reduces_a_range_to_the_filter(one: Filter, offsets: tuple[int, int] | None) -> None:
    """Clocks are never set back."""
    assert left(one) == offsets


@pytest.mark.parametrize(
    ("one", "offset"),
    [
        (LessThan(("store_timestamp",), at(_FIRST_MS + 3, 1)), 13),
        (GreaterThanOrEqual(("store_timestamp",), at(_FIRST_MS + 3, -1)), 13),
        (LessThanOrEqual(("store_timestamp",), at(_FIRST_MS + 3, 999)), 13),
        (GreaterThan(("store_timestamp",), at(_FIRST_MS + 3, -1)), 13),
    ],
    ids=name_of,
)
def test_a_message_next_to_a_fractional_millisecond_is_kept(one: Filter, offset: int) -> None:
    """Stores have milliseconds, Spark has microseconds."""
    found = left(one)
    assert found is not None
    assert offset in range(*found)


@pytest.mark.parametrize("store_ms", [0, 1, 1001, 543_456_791, _FIRST_MS + 1, 4_102_444_800_007])
def test_a_time_filter_is_exact_to_the_millisecond(store_ms: int) -> None:
    """The binary form of the fraction of a second does not matter."""
    log = FakeLog({_QUEUE: [FakeMessage(0, store_ms - 1), FakeMessage(1, store_ms), FakeMessage(2, store_ms + 1)]})
    wanted = Wanted().and_filters([EqualTo(("store_timestamp",), at(store_ms))])
    assert wanted.of_range(QueueRange("a", 0, 0, 3), log, slack_ms=0) == QueueRange("a", 0, 1, 2)


def test_a_time_without_a_zone_is_utc() -> None:
    """The column is in UTC."""
    assert left(EqualTo(("store_timestamp",), at(_FIRST_MS + 3).replace(tzinfo=None))) == (13, 14)


def test_time_ranges_are_widened_by_the_slack() -> None:
    """Both sides are wider; a range of offsets stays as it is."""
    assert left(EqualTo(("store_timestamp",), at(_FIRST_MS + 5)), slack_ms=2) == (13, 18)
    assert left(EqualTo(("queue_offset",), 13), slack_ms=2) == (13, 14)


@pytest.mark.parametrize("halving", [False, True])
def test_a_clock_set_back_within_the_slack_loses_no_message(*, halving: bool) -> None:
    """Messages 2 and 3 have earlier times than message 1."""
    times = [0, 10, 6, 7, 20]
    log = FakeLog({_QUEUE: [FakeMessage(offset, time) for offset, time in enumerate(times)]}, halving=halving)
    for offset, time in enumerate(times):
        wanted = Wanted().and_filters([EqualTo(("store_timestamp",), at(time))])
        found = wanted.of_range(QueueRange("a", 0, 0, 5), log, slack_ms=4)
        assert found is not None
        assert found.start <= offset < found.end


@pytest.mark.parametrize(
    ("one", "kept"),
    [
        (EqualTo(("topic",), "a"), {("a", 0), ("a", 1)}),
        (In(("topic",), ("b", "c")), {("b", 0), ("b", 1)}),
        (EqualTo(("queue_id",), 1), {("a", 1), ("b", 1)}),
        (LessThan(("queue_id",), 1), {("a", 0), ("b", 0)}),
        (GreaterThanOrEqual(("queue_id",), 1), {("a", 1), ("b", 1)}),
        (In(("queue_id",), (0, 7)), {("a", 0), ("b", 0)}),
    ],
    ids=name_of,
)
def test_queues_excluded_by_filters_are_omitted(one: Filter, kept: set[tuple[str, int]]) -> None:
    """They are excluded completely, and without a look at the log."""
    wanted = Wanted().and_filters([one])
    queues = [TopicQueue(topic, queue_id) for topic in "ab" for queue_id in range(2)]
    assert {queue for queue in queues if wanted.has_queue(queue)} == kept
    assert {queue for queue in queues if left(one, queue=queue)} == kept


@pytest.mark.parametrize(
    ("one", "tags"),
    [
        (EqualTo(("tag",), "A"), {"A"}),
        (In(("tag",), ("A", "B")), {"A", "B"}),
        (EqualTo(("tag",), "*"), None),
        (EqualTo(("tag",), ""), None),
        (EqualTo(("tag",), " A"), None),
        (EqualTo(("tag",), "A || B"), None),
        (In(("tag",), ("A", "*")), None),
        (In(("tag",), ("A", None)), frozenset({"A"})),
        (GreaterThan(("tag",), "A"), None),
        (StringStartsWith(("tag",), "A"), None),
    ],
    ids=name_of,
)
def test_tag_filters_are_pushed_down_if_a_subscription_can_name_them(one: Filter, tags: set[str] | None) -> None:
    """Otherwise all messages are read, and Spark filters them."""
    assert Wanted().and_filters([one]).tags == tags


@pytest.mark.parametrize(
    "one",
    [
        EqualTo(("body",), b"x"),
        EqualTo(("born_timestamp",), at(0)),
        EqualTo(("properties", "topic"), "b"),
        EqualTo(("topic", "queue_id"), 7),
        EqualTo(("queue_id",), None),
        EqualNullSafe(("topic",), "b"),
        EqualNullSafe(("queue_offset",), 1),
        EqualNullSafe(("tag",), None),
        Not(EqualTo(("topic",), "a")),
        Not(In(("queue_id",), (0,))),
        IsNull(("tag",)),
        IsNotNull(("store_timestamp",)),
        StringStartsWith(("topic",), "b"),
        StringEndsWith(("topic",), "b"),
        StringContains(("topic",), "b"),
        GreaterThan(("topic",), "b"),
    ],
    ids=name_of,
)
def test_other_filters_are_left_to_spark(one: Filter) -> None:
    """Nothing is excluded for it."""
    assert Wanted().and_filters([one]) == Wanted()
    assert left(one) == (10, 20)


@pytest.mark.parametrize(
    "filters",
    [
        [EqualTo(("topic",), "a"), EqualTo(("topic",), "b")],
        [In(("topic",), ("b", "c"))],
        [EqualTo(("queue_id",), 0), In(("queue_id",), (1, 2))],
        [LessThan(("queue_id",), 1), GreaterThan(("queue_id",), 0)],
        [GreaterThan(("queue_offset",), 14), LessThan(("queue_offset",), 13)],
        [EqualTo(("queue_offset",), 12), EqualTo(("queue_offset",), 13)],
        [
            GreaterThan(("store_timestamp",), at(_FIRST_MS + 6)),
            LessThan(("store_timestamp",), at(_FIRST_MS + 3)),
        ],
        [EqualTo(("tag",), "A"), In(("tag",), ("B", "C"))],
    ],
    ids=["topics", "another topic", "queue lists", "queues", "offsets", "single offsets", "times", "tags"],
)
def test_contradictory_filters_leave_no_range(filters: list[Filter]) -> None:
    """The order does not matter."""
    assert left(*filters) is None
    assert left(*reversed(filters)) is None


def test_tag_filters_are_intersected_with_the_tag_option() -> None:
    """The option's tags are intersected with the filter's."""
    given_tags = Wanted(tags=frozenset({"A", "B"}))
    assert given_tags.and_filters([In(("tag",), ("B", "C"))]).tags == frozenset({"B"})
    assert given_tags.and_filters([]).tags == frozenset({"A", "B"})


def test_without_filters_everything_is_read() -> None:
    """An empty log gives an empty result."""
    assert left() == (10, 20)
    assert Wanted().of_range(QueueRange("a", 0, 5, 5), FakeLog({_QUEUE: []}), slack_ms=0) is None


@pytest.mark.parametrize(
    ("one", "offsets"),
    [
        (In(("queue_offset",), (12, None)), (12, 13)),
        (In(("store_timestamp",), (None, at(_FIRST_MS + 2))), (12, 13)),
    ],
    ids=["offset", "time"],
)
def test_null_in_an_in_list_matches_nothing(one: Filter, offsets: tuple[int, int]) -> None:
    """`queue_offset IN (12, NULL)` is true only for offset 12."""
    found = left(one)
    assert found is not None
    assert found[0] <= offsets[0] < offsets[1] <= found[1]


def test_filters_on_kafkas_columns_restrict_the_messages_columns() -> None:
    """Without kafkaColumns the same names can be fields of JSON bodies, which restrict nothing."""
    filters = [EqualTo(("partition",), 0), GreaterThan(("offset",), 12), LessThan(("timestamp",), at(_FIRST_MS + 5))]
    own = [EqualTo(("queue_id",), 0), GreaterThan(("queue_offset",), 12)]
    of_time = LessThan(("store_timestamp",), at(_FIRST_MS + 5))
    assert Wanted().and_filters(filters, KAFKA_NAMES) == Wanted().and_filters([*own, of_time]) != Wanted()
    assert Wanted().and_filters(filters) == Wanted()
