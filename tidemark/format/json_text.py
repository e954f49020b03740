"""JSON values with their original text, and a limit on the nesting depth of a text.

Decoding and encoding changes a value: numbers beyond a double, `1.10`, `-0`, repeated names, escapes. Therefore a
stored value is cut out of its document. The standard library's scanner finds the end of a value.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]

MAX_DEPTH = 500  # common parsers stop at about 1,000, and a page of messages adds three levels

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)  # numbers of any length
_BLANK = re.compile(r"[ \t\n\r]*")
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in _STEPS)
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class JsonWalk:
    """Walk over one document that is known to be valid JSON.

    Each value is read once, by `text` or by its members or elements; a value that is not read is skipped.
    """

    def __init__(self, document: str) -> None:
        self._document = document
        self._at = 0
        self._skip_blanks()

    def members(self) -> Iterator[str]:
        """Yield the name of each member of the object at this position; names can repeat."""
        while self._next_in("}"):
            name, self._at = scanstring(self._document, self._at + 1, True)
            self._skip_blanks()
            self._at += 1  # the colon
            self._skip_blanks()
            value_at = self._at
            yield name
            if self._at == value_at:
                self.text()

    def elements(self) -> Iterator[None]:
        """Yield before each element of the array at this position."""
        while self._next_in("]"):
            value_at = self._at
            yield
            if self._at == value_at:
                self.text()

    def text(self) -> str:
        """Return the text of the value at this position and move after it.

        Raises:
            ValueError: the value is nested too deeply for the standard library's scanner.
        """
        start = self._at
        try:
            _, self._at = _DECODER.raw_decode(self._document, start)
        except RecursionError:
            raise ValueError(too_deep()) from None
        return self._document[start : self._at]

    def _next_in(self, closing: str) -> bool:
        """Move over an opening bracket or a comma; return False after the closing bracket."""
        self._skip_blanks()
        is_end = self._document[self._at] == closing
        self._at += 1
        self._skip_blanks()
        if not is_end and self._document[self._at] == closing:  # an empty object or array
            self._at += 1
            return False
        return not is_end

    def _skip_blanks(self) -> None:
        found = _BLANK.match(self._document, self._at)
        assert found is not None
        self._at = found.end()


def too_deep() -> str:
    """Return the error message for a value that `is_too_deep`."""
    return f"it is nested deeper than {MAX_DEPTH} levels, which many JSON parsers cannot read; send it as text"


def is_too_deep(text: bytes) -> bool:
    """Return True if a JSON text has more than MAX_DEPTH levels of arrays and objects."""
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _STRING.sub(b"", text).translate(None, _NO_BRACKETS)
    return max(itertools.accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH
