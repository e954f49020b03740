"""Lines of an input that arrives in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from tidemark.cli.sending import line_reader as arrivals
from tidemark.cli.sending.line_reader import Arrivals, Chunk, line_chunks
from tidemark.errors import MessageSizeExceededError


def _chunks(pieces: Iterable[bytes]) -> list[Chunk]:
    come = iter([*pieces, b""])
    return list(line_chunks(lambda: next(come)))


@pytest.mark.parametrize(
    ("pieces", "chunks"),
    [
        ([], []),
        ([b"a\nb\n"], [(1, [b"a", b"b"], True)]),
        ([b"a\nb", b"c\nd"], [(1, [b"a"], True), (2, [b"bc"], True), (3, [b"d"], False)]),
        ([b"a", b"b", b"\n"], [(1, [b"ab"], True)]),
        ([b"\n\n"], [(1, [b"", b""], True)]),
        ([b"a\r\n"], [(1, [b"a\r"], True)]),
    ],
)
def test_lines_are_whole_and_numbered(pieces: list[bytes], chunks: list[tuple[int, list[bytes], bool]]) -> None:
    """The borders of the pieces do not matter; the last line needs no line end."""
    assert [tuple(chunk) for chunk in _chunks(pieces)] == chunks


def test_an_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the line's number, before the line fills the memory."""
    monkeypatch.setattr(arrivals, "_LONGEST_LINE_BYTES", 10)
    with pytest.raises(MessageSizeExceededError) as raised:
        _chunks([b"a\n", b"12345", b"67890", b"1"])
    assert raised.value.line == 2


def test_available_input_is_returned_immediately() -> None:
    """A slow pipe delivers line by line; b"" marks its end."""
    ours, theirs = os.pipe()
    come = Arrivals(ours)
    os.write(theirs, b"one\n")
    assert come.take() == b"one\n"
    os.write(theirs, b"two\n")
    assert come.take() == b"two\n"
    os.close(theirs)
    assert come.take() == b""
    os.close(ours)


def test_a_failed_read_is_raised() -> None:
    """The lines before it are delivered first."""
    ours, theirs = os.pipe()
    os.close(theirs)
    with pytest.raises(OSError, match="Bad file descriptor"):
        Arrivals(_closed(ours)).take()


def _closed(descriptor: int) -> int:
    os.close(descriptor)
    return descriptor
