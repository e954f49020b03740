"""Assertions about contents of files fail with a few lines."""

from __future__ import annotations

import pytest

from tests.file_differences import explain

ONE, OTHER = bytes(2000), bytes(1500) + b"x" + bytes(499)


@pytest.mark.parametrize(
    ("left", "right", "lines"),
    [
        (ONE, OTHER, ["file 0: 2000 and 2000 bytes, from byte 1500: "]),
        ([ONE, ONE], [ONE, OTHER], ["file 1: 2000 and 2000 bytes, from byte 1500: "]),
        ([ONE, ONE], [ONE], ["file 1: only left"]),
        ({"a": ONE}, {"b": ONE, "c": b""}, ["a: only left", "b: only right", "c: only right"]),
        ([ONE], [ONE[:1999]], ["file 0: 2000 and 1999 bytes, from byte 1999: "]),
    ],
)
def test_different_files_are_named_with_their_first_different_byte(
    left: object, right: object, lines: list[str]
) -> None:
    found = explain(left, right)
    assert found is not None
    assert all(line.startswith(start) for line, start in zip(found[1:], lines, strict=True))
    assert max(map(len, found)) < 300


@pytest.mark.parametrize(
    ("left", "right"), [(b"a", b"b"), ([1], [2]), (ONE, 5), (ONE, [ONE]), ({"a": "x"}, {"a": ONE}), ([], [])]
)
def test_what_is_not_files_is_left_to_pytest(left: object, right: object) -> None:
    assert explain(left, right) is None
