"""The JSON form of a header."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.errors import FrameIllegalError
from tidemark.remoting.codes import Language
from tidemark.remoting.json_header import decode_json_header, encode_json_header


def header(**members: Any) -> bytes:
    return json.dumps({"code": 10, "opaque": 1, **members}).encode()


def fields_of(text: str) -> dict[str, str]:
    return decode_json_header(b'{"code":10,"opaque":1,"extFields":' + text.encode() + b"}")[-1]


def reason_of(data: bytes) -> tuple[object, object]:
    with pytest.raises(FrameIllegalError) as refused:
        decode_json_header(data)
    return refused.value.facts["reason"], refused.value.facts.get("member")


def test_members_in_any_order_are_read_and_unknown_ones_ignored() -> None:
    data = (
        b'{"later":[1,{"x":null}],"version":317,"extFields":{"topic":"T","x":"y"},"remark":"r","opaque":-5,'
        b'"language":"GO","flag":2,"code":105}'
    )
    assert decode_json_header(data) == (105, 2, -5, Language.GO, 317, "r", {"topic": "T", "x": "y"})


def test_members_that_may_be_missing_have_defaults() -> None:
    assert decode_json_header(b'{"code":34,"opaque":9}') == (34, 0, 9, Language.OTHER, 0, "", {})
    assert decode_json_header(header(remark=None, extFields=None))[-2:] == ("", {})


@pytest.mark.parametrize("language", ["KLINGON", "", 9, None, ["GO"], {"GO": 1}])
def test_unknown_language_counts_as_other(language: object) -> None:
    assert decode_json_header(header(language=language))[3] is Language.OTHER


def test_numbers_and_booleans_of_fields_become_their_text() -> None:
    assert fields_of('{"a":4,"b":-1,"c":true,"d":false,"e":1.50,"f":1e3,"g":18446744073709551616,"h":"x"}') == {
        "a": "4",
        "b": "-1",
        "c": "true",
        "d": "false",
        "e": "1.50",
        "f": "1e3",
        "g": "18446744073709551616",
        "h": "x",
    }


def test_null_field_counts_as_absent() -> None:
    assert fields_of('{"a":null,"b":"1"}') == {"b": "1"}


@pytest.mark.parametrize("fields", ['{"a":[]}', '{"a":{}}', "[]", '"x"', "1"])
def test_other_values_of_fields_are_refused(fields: str) -> None:
    assert reason_of(b'{"code":10,"opaque":1,"extFields":' + fields.encode() + b"}") == ("MEMBER_ILLEGAL", "extFields")


@pytest.mark.parametrize("data", [b"", b"x", b"GET /", b'{"code":10', b'{"code":10}x', b'{"a":"\xff"}', b"\0" * 20])
def test_text_that_is_no_json_is_refused(data: bytes) -> None:
    assert reason_of(data)[0] == "NOT_JSON"


@pytest.mark.parametrize("data", [b"[]", b"10", b'"x"', b"null", b"true"])
def test_json_that_is_no_object_is_refused(data: bytes) -> None:
    assert reason_of(data)[0] == "NOT_AN_OBJECT"


@pytest.mark.parametrize("member", ["code", "opaque", "flag", "version"])
@pytest.mark.parametrize("value", [1 << 31, -(1 << 31) - 1, 1.0, "1", True, None, [1]])
def test_number_of_another_type_or_range_is_refused(member: str, value: object) -> None:
    assert reason_of(header(**{member: value})) == ("MEMBER_ILLEGAL", member)


@pytest.mark.parametrize("data", [b"{}", b'{"code":1}', b'{"opaque":1}'])
def test_code_and_opaque_are_required(data: bytes) -> None:
    assert reason_of(data)[0] == "MEMBER_ILLEGAL"


def test_remark_of_another_type_is_refused() -> None:
    assert reason_of(header(remark=5)) == ("MEMBER_ILLEGAL", "remark")


@pytest.mark.parametrize("levels", [600, 1_000, 2_000, 100_000])
@pytest.mark.parametrize("value", ['"x"', "1"])
def test_deep_json_is_read_or_refused_but_overflows_no_stack(levels: int, value: str) -> None:
    """A number in the fields takes the slower decoder, which has another limit."""
    deep = '{"deep":' + "[" * levels + "]" * levels + ',"code":10,"opaque":1,"extFields":{"a":' + value + "}}"
    try:
        assert decode_json_header(deep.encode())[-1] == {"a": value.strip('"')}
        assert levels < 2_000
    except FrameIllegalError as error:
        assert error.facts["reason"] == "NOT_JSON"  # noqa: PT017 - either outcome is allowed


def test_encoded_header_is_the_protocols_json() -> None:
    data = encode_json_header(0, 1, 6, Language.JAVA, 479, "", {"queueId": "0"})
    assert json.loads(data) == {
        "code": 0,
        "flag": 1,
        "opaque": 6,
        "language": "JAVA",
        "version": 479,
        "serializeTypeCurrentRPC": "JSON",
        "extFields": {"queueId": "0"},
    }
    assert json.loads(encode_json_header(17, 1, 6, Language.JAVA, 479, "gone", {}))["remark"] == "gone"
