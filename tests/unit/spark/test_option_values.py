"""Values of options: offsets, times and queues in JSON, and durations."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.spark.option_values import End, parse_assignment, parse_by_queue, parse_offsets, parse_seconds

_NO_OBJECTS = ["", "{", '{"a": {"0": 1', "{'a': {'0': 1}}", "[]", "[1]", "3", "null", '"earliest"', "{}"]
_NO_WHOLE_NUMBERS = ['"23"', "1.5", "23.0", "true", "null", "[1]", "{}"]


@pytest.mark.parametrize(
    ("text", "end"),
    [("earliest", End.EARLIEST), ("latest", End.LATEST), ("EARLIEST", End.EARLIEST), (" Latest ", End.LATEST)],
)
def test_a_named_end_is_parsed_in_any_case(text: str, end: End) -> None:
    """Kafka's connector compares these names without regard to case."""
    assert parse_offsets(text) is end


def test_offsets_are_parsed_by_topic_and_queue() -> None:
    """-2 and -1 are the queue's ends."""
    text = '{"orders": {"0": 23, "1": -2}, "bills": {"10": -1}}'
    assert parse_offsets(text) == {"orders": {0: 23, 1: -2}, "bills": {10: -1}}


@given(
    offsets=st.dictionaries(
        st.text(min_size=1), st.dictionaries(st.integers(0, 1000), st.integers(-2, (1 << 63) - 1)), min_size=1
    )
)
def test_offsets_written_as_json_are_parsed_unchanged(offsets: dict[str, dict[int, int]]) -> None:
    """Topics may have any name, and offsets go up to the maximum."""
    assert parse_offsets(json.dumps(offsets)) == offsets


@pytest.mark.parametrize("offset", [-3, -100])
def test_other_negative_offsets_are_refused(offset: int) -> None:
    """It is refused even next to valid offsets."""
    with pytest.raises(ValueError, match="0 or more, -2"):
        parse_offsets(f'{{"orders": {{"0": 1, "1": {offset}}}}}')


@pytest.mark.parametrize("text", _NO_OBJECTS)
def test_offsets_that_are_not_a_json_object_are_refused_with_an_example(text: str) -> None:
    """The text is truncated, has another type, or is empty."""
    with pytest.raises(ValueError, match=re.escape('{"topic": {"0": 23}}')):
        parse_by_queue(text)


@pytest.mark.parametrize("value", _NO_WHOLE_NUMBERS)
def test_an_offset_that_is_not_an_integer_is_refused(value: str) -> None:
    """Nothing is rounded or converted, and the error names the topic."""
    with pytest.raises(ValueError, match="orders"):
        parse_by_queue(f'{{"bills": {{"0": 1}}, "orders": {{"0": 1, "1": {value}}}}}')


@pytest.mark.parametrize("queues", ["[0, 1]", "23", '"0"', "null"])
def test_a_topic_without_queues_is_refused(queues: str) -> None:
    """A topic's offsets are an object by queue."""
    with pytest.raises(ValueError, match="orders"):
        parse_by_queue(f'{{"orders": {queues}}}')


@pytest.mark.parametrize("name", ["", "x", "-1", "0.5", "1e1", "²"])
def test_a_queue_id_that_is_not_a_decimal_number_is_refused(name: str) -> None:
    """The error names topic and queue."""
    with pytest.raises(ValueError, match=r"orders: .* not a queue id"):
        parse_by_queue(json.dumps({"orders": {name: 1}}))


def test_assigned_queues_are_parsed_by_topic() -> None:
    """This is Kafka's `assign`."""
    assert parse_assignment('{"orders": [0, 2], "bills": [1]}') == {"orders": [0, 2], "bills": [1]}


@pytest.mark.parametrize("queues", ["[]", '{"0": 1}', "0", "[-1]", "[0, true]", '["0"]', "[1.0]", "[null]"])
def test_assigned_queues_that_are_not_a_list_of_ids_are_refused(queues: str) -> None:
    """There is at least one, and none is negative."""
    with pytest.raises(ValueError, match="orders: expected a list of queue ids"):
        parse_assignment(f'{{"orders": {queues}}}')


@pytest.mark.parametrize("text", _NO_OBJECTS)
def test_an_assignment_that_is_not_a_json_object_is_refused_with_an_example(text: str) -> None:
    """The text is truncated, has another type, or is empty."""
    with pytest.raises(ValueError, match=re.escape('{"topic": [0, 1]}')):
        parse_assignment(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15m", 900),
        ("3min", 180),
        ("10s", 10),
        ("500ms", 0.5),
        ("1h", 3600),
        ("2d", 172_800),
        ("250", 0.25),
        ("0", 0),
        (" 10 S ", 10),
        ("15M", 900),
    ],
)
def test_a_time_has_a_unit_or_is_in_milliseconds(text: str, seconds: float) -> None:
    """Spark parses times in the same way: `m` is minutes, in any case."""
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", " ", "m", "-5s", "1.5s", "10x", "10 20", "1h30m", "soon"])
def test_an_invalid_duration_is_refused_with_examples(text: str) -> None:
    """Negative times and fractions of a unit are refused."""
    with pytest.raises(ValueError, match="15m, 10s or 500ms"):
        parse_seconds(text)
