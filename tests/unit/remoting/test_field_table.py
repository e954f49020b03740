"""Typed values of header fields."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tidemark.errors import FieldIllegalError
from tidemark.remoting.field_table import BOOLEAN, INT32, INT64, TEXT, FieldTable, HeaderField


class Sample(NamedTuple):
    name: str
    small: int
    large: int = 5
    flag: bool = False
    limit: int | None = None


TABLE = FieldTable(
    Sample,
    HeaderField("name", "aName", TEXT),
    HeaderField("small", "e", INT32, "queueId (e)"),
    HeaderField("large", "aLarge", INT64),
    HeaderField("flag", "aFlag", BOOLEAN),
    HeaderField("limit", "aLimit", INT32),
)


def small(text: str) -> int:
    return TABLE.read({"aName": "n", "e": text}).small


def large(text: str) -> int:
    return TABLE.read({"aName": "n", "e": "0", "aLarge": text}).large


def test_missing_fields_take_their_defaults_and_unknown_ones_are_ignored() -> None:
    assert TABLE.read({"aName": "", "e": "1", "later": "x"}) == Sample("", 1, 5, False, None)


def test_fields_of_none_are_left_out() -> None:
    assert TABLE.write(Sample("n", -1, 7, True)) == {"aName": "n", "e": "-1", "aLarge": "7", "aFlag": "true"}
    assert TABLE.write(Sample("n", 1, limit=0))["aLimit"] == "0"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("255", 255),
        ("256", 256),
        ("-1", -1),
        ("+7", 7),
        ("-0", 0),
        ("007", 7),
        ("0" * 5_000 + "7", 7),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
    ],
)
def test_int32_is_parsed_as_java_does(text: str, value: int) -> None:
    assert small(text) == large(text) == value


NO_INTEGERS = [
    "",
    "+",
    "-",
    " 1",
    "1 ",
    "1_000",
    "1.0",
    "1e3",
    "0x10",
    "+-1",
    "--1",
    "1\n",
    "null",
    "٣",
    "¹",
    "9" * 5_000,
]


@pytest.mark.parametrize("text", [*NO_INTEGERS, "2147483648", "-2147483649", "9999999999"])
def test_other_texts_are_no_int32(text: str) -> None:
    with pytest.raises(FieldIllegalError) as refused:
        small(text)
    assert refused.value.facts["field"] == "e"
    assert str(refused.value).startswith("queueId (e) is ")
    assert "it must be an integer from -2147483648 to 2147483647" in str(refused.value)


@pytest.mark.parametrize("text", ["9223372036854775807", "-9223372036854775808", "999999999999999999"])
def test_int64_has_its_whole_range(text: str) -> None:
    assert large(text) == int(text)


@pytest.mark.parametrize("text", [*NO_INTEGERS, "9223372036854775808", "-9223372036854775809"])
def test_other_texts_are_no_int64(text: str) -> None:
    with pytest.raises(FieldIllegalError, match="it must be an integer from -9223372036854775808"):
        large(text)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("TRUE", True), ("True", True), ("false", False), ("1", False), ("", False)]
)
def test_boolean_is_parsed_as_java_does(text: str, value: bool) -> None:
    assert TABLE.read({"aName": "n", "e": "0", "aFlag": text}).flag is value


def test_missing_field_is_named() -> None:
    with pytest.raises(FieldIllegalError) as refused:
        TABLE.read({"aName": "n"})
    allowed = "an integer from -2147483648 to 2147483647"
    assert refused.value.facts == {"field": "e", "value": None, "allowed": allowed}
    assert str(refused.value) == f"queueId (e) is missing; it must be {allowed}"
    with pytest.raises(FieldIllegalError, match="aName is missing; it must be a text"):
        TABLE.read({})


def test_long_value_is_shortened_in_the_error() -> None:
    with pytest.raises(FieldIllegalError) as refused:
        small("x" * 50_000)
    assert refused.value.facts["value"] == "x" * 100 + "…"
    assert len(str(refused.value)) < 250
