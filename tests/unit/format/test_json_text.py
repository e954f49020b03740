"""JSON values as text: the walk over a document, and the limit on nesting."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.format.json_text import MAX_DEPTH, JsonWalk, is_too_deep

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def written(value: Any, indent: int | None) -> str:
    """Encode *value* with whitespace in all allowed positions."""
    separators = (" ,\t", "\r\n: ") if indent else (",", ":")
    return f"{' ' * (indent or 0)}{json.dumps(value, indent=indent, separators=separators)}\n"


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 1]))
def test_members_are_returned_with_the_text_of_the_document(values: dict[str, Any], indent: int | None) -> None:
    document = written(values, indent)
    walk = JsonWalk(document)
    found = {name: walk.text() for name in walk.members()}
    assert {name: json.loads(text) for name, text in found.items()} == values
    assert all(text in document and text == text.strip() for text in found.values())


@given(st.lists(VALUES, max_size=4), st.sampled_from([None, 1]))
def test_elements_are_returned_with_the_text_of_the_document(values: list[Any], indent: int | None) -> None:
    walk = JsonWalk(written(values, indent))
    assert [json.loads(walk.text()) for _ in walk.elements()] == values


def test_values_that_are_not_read_are_skipped() -> None:
    walk = JsonWalk('{"a": [1, {"x": []}], "m": [{"n": 1, "b": 1.10}, {}, {"b": -0}], "z": "}"}')
    found = [
        walk.text()
        for name in walk.members()
        if name == "m"
        for _ in walk.elements()
        for part in walk.members()
        if part == "b"
    ]
    assert found == ["1.10", "-0"]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_beyond_the_limit_is_found(opening: str) -> None:
    closing = "]" if opening == "[" else "}"

    def nested(depth: int) -> bytes:
        return (opening * depth + "1" + closing * depth).encode()

    assert not is_too_deep(nested(MAX_DEPTH))
    assert is_too_deep(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize(
    "text", ['"' + "[" * 9000 + '"', '["\\\\", "' + "{" * 9000 + '\\""]', "[" + "[]," * 9000 + "0]"]
)
def test_brackets_in_strings_and_in_sequence_are_not_nesting(text: str) -> None:
    json.loads(text)
    assert not is_too_deep(text.encode())


def test_a_value_beyond_the_scanners_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="500 levels"):
        JsonWalk("[" * 100_000 + "]" * 100_000).text()
