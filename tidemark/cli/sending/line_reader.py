"""Lines of a file or a pipe as they arrive: the data that is available now becomes one chunk.

A thread reads ahead, up to a limit. A line that arrives slowly is therefore passed on at once, and a full pipe is
drained while the previous chunk is being sent.
"""

from __future__ import annotations

import codecs
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidemark.errors import ArgumentIllegalError, MessageSizeExceededError

_READ_BYTES = 1 << 20
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_AHEAD_BYTES = 8 << 20
_LONGEST_LINE_BYTES = 256 << 20  # the greatest message size that a writer can be configured to accept


class Chunk(NamedTuple):
    """Lines without their newlines. first: line number of the first, from 1; has_end: the last one had a newline."""

    first: int
    lines: list[bytes]
    has_end: bool = True


class Arrivals:
    """The bytes of a file descriptor, read ahead by a thread that ends with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._is_over = False
        self._error: OSError | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True, name="read-ahead").start()

    def take(self) -> bytes:
        """Wait for data and return all that has arrived; b"" at the end. Raises the OSError that ended the reading."""
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._is_over)
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._changed.notify()
            if not data and self._error is not None:
                raise self._error
            return data

    def _run(self) -> None:
        data = b"-"
        while data:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except OSError as error:
                data, self._error = b"", error
            with self._changed:
                self._pieces.append(data)
                self._size += len(data)
                self._is_over = not data
                self._changed.notify()
                self._changed.wait_for(lambda: self._size < _AHEAD_BYTES)


def line_chunks(take: Callable[[], bytes]) -> Iterator[Chunk]:
    """Yield the lines of the data that *take* returns, until it returns b"". The last line needs no newline.

    Raises MessageSizeExceededError (facts: line, limit) for a line that is too long for any writer.
    """
    begun: list[bytes] = []  # parts of a line without its end
    begun_size = 0
    number = 1
    while data := take():
        head, end, rest = data.rpartition(b"\n")
        if end:
            lines = b"".join([*begun, head]).split(b"\n")
            yield Chunk(number, lines)
            number += len(lines)
            begun, begun_size = [], 0
        begun.append(rest)
        begun_size += len(rest)
        if begun_size > _LONGEST_LINE_BYTES:
            raise MessageSizeExceededError(
                f"line {number} is longer than {_LONGEST_LINE_BYTES:,} bytes", line=number, limit=_LONGEST_LINE_BYTES
            )
    if begun_size:
        yield Chunk(number, [b"".join(begun)], has_end=False)


def text_lines(chunk: Chunk) -> Chunk:
    """Leave out a UTF-8 byte order mark at the start of the input, and the carriage return of each CRLF.

    Raises:
        ArgumentIllegalError: the input begins with the byte order mark of UTF-16. Facts: line.
    """
    first, lines = chunk.first, chunk.lines
    if first == 1 and lines and lines[0].startswith(_UTF16_MARKS):
        raise ArgumentIllegalError(
            "line 1: it begins with the byte order mark of UTF-16; convert it, for example with "
            "`iconv -f UTF-16 -t UTF-8`, or give --exact to send its bytes as they are",
            line=1,
        )
    if first == 1 and lines:
        lines = [lines[0].removeprefix(codecs.BOM_UTF8), *lines[1:]]
    ended = len(lines) if chunk.has_end else len(lines) - 1
    return Chunk(first, [line.removesuffix(b"\r") for line in lines[:ended]] + lines[ended:], chunk.has_end)
