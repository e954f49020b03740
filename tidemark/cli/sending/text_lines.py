"""Line ends and byte order marks of text input."""

from __future__ import annotations

import codecs

from tidemark.cli.sending.line_reader import Chunk
from tidemark.errors import ArgumentIllegalError

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


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
