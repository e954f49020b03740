"""Typed members of a JSON body."""

from __future__ import annotations

import re

import pytest

from tidemark.errors import FieldIllegalError
from tidemark.remoting.json_body import parse_body

BODY = b'{"a":"x","n":5,"large":9223372036854775807,"f":true,"list":["a","b"],"o":[{"k":"v"}],"none":null}'


def test_members_have_their_types() -> None:
    found = parse_body(memoryview(BODY))
    assert (found.text("a"), found.integer("n"), found.flag("f")) == ("x", 5, True)
    assert found.integer("large", bits=64) == (1 << 63) - 1
    assert found.texts("list") == ("a", "b")
    assert [one.text("k") for one in found.objects("o")] == ["v"]


@pytest.mark.parametrize("name", ["missing", "none"])
def test_missing_and_null_members_take_the_default(name: str) -> None:
    found = parse_body(BODY)
    assert (found.text(name, "d"), found.integer(name, 3), found.flag(name, False)) == ("d", 3, False)
    assert (found.texts(name), list(found.objects(name))) == ((), [])
    with pytest.raises(FieldIllegalError, match=rf"^body\.{name} is missing; it must be a text$"):
        found.text(name)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "body is 'no JSON"),
        (b"{0:1}", "body is 'no JSON"),
        (b"[" * 100_000, "body is 'no JSON"),
        (b"[]", "body is 'an array'; it must be an object"),
        (b"null", "body is missing; it must be an object"),
    ],
)
def test_body_that_is_no_object_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(FieldIllegalError, match=f"^{re.escape(message)}"):
        parse_body(body)


@pytest.mark.parametrize("levels", [200, 300, 1_000])
def test_deep_value_is_refused_without_being_shown(levels: int) -> None:
    """A JSON encoder has another limit of levels than the decoder."""
    deep = b"[" * levels + b"]" * levels
    with pytest.raises(FieldIllegalError, match=r"^body\.a is 'an array'; it must be a text$"):
        parse_body(b'{"a":' + deep + b"}").text("a")
    with pytest.raises(FieldIllegalError, match=r"^body\.a is 'an array'; it must be an array of texts$"):
        parse_body(b'{"a":[' + deep + b"]}").texts("a")
    with pytest.raises(FieldIllegalError, match=r"^body is 'an array'; it must be an object$"):
        parse_body(deep)


def test_member_of_another_type_is_named_with_its_value() -> None:
    found = parse_body(b'{"n":true,"x":2147483648,"l":["a",1],"o":[{"k":[1]},2]}')
    with pytest.raises(FieldIllegalError, match=r"^body\.n is 'true'; it must be an integer"):
        found.integer("n")
    with pytest.raises(FieldIllegalError, match=r"^body\.x is '2147483648'; it must be an integer"):
        found.integer("x")
    with pytest.raises(FieldIllegalError, match=r"^body\.l is .*; it must be an array of texts$"):
        found.texts("l")
    with pytest.raises(FieldIllegalError, match=r"^body\.o\[0\]\.k is 'an array'; it must be a text$"):
        next(found.objects("o")).text("k")
    with pytest.raises(FieldIllegalError, match=r"^body\.o\[1\] is '2'; it must be an object$"):
        list(found.objects("o"))
