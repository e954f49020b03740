"""Header fields ⇄ typed values: one table per request or answer, for both directions.

Numbers and booleans are text in a header, and are read as Java reads them. A missing field takes the default of its
NamedTuple; a field without a default is required. Unknown fields are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from tidemark.errors import FieldIllegalError
from tidemark.format.properties import is_java_true

_MAX_SHOWN = 100  # characters of an illegal value in its error
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_SMALL_INTEGERS = {str(number): number for number in range(256)}  # most fields; a lookup is faster than a check
_REQUIRED = object()

Value = TypeVar("Value", bound=tuple[Any, ...])


class Kind(NamedTuple):
    """Type of a field. parse: raises ValueError for an illegal text; None if every text is legal."""

    allowed: str
    parse: Callable[[str], Any] | None
    write: Callable[[Any], str]


class HeaderField(NamedTuple):
    """One row of a table: an attribute of the NamedTuple and the field that carries it."""

    attribute: str
    name: str
    kind: Kind
    label: str = ""  # for errors, if the name alone does not explain itself


def _java_integer(text: str, bits: int) -> int:
    """Parse an integer as Java does: optional sign and ASCII digits, within *bits* bits."""
    if not _INTEGER.fullmatch(text):
        raise ValueError("no integer")
    digits = text.lstrip("+-").lstrip("0")
    value = int(digits[:20] or "0")  # more digits do not fit anyway
    value = -value if text[0] == "-" else value
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError("out of range")
    return value


def _int32(text: str) -> int:
    small = _SMALL_INTEGERS.get(text)
    if small is not None:
        return small
    if len(text) < 10 and text.isdigit() and text.isascii():  # every such number fits
        return int(text)
    return _java_integer(text, 32)


def _int64(text: str) -> int:
    if len(text) < 19 and text.isdigit() and text.isascii():
        return int(text)
    return _java_integer(text, 64)


def _write_boolean(value: bool) -> str:
    return "true" if value else "false"


TEXT = Kind("a text", None, str)
INT32 = Kind("an integer from -2147483648 to 2147483647", _int32, str)
INT64 = Kind("an integer from -9223372036854775808 to 9223372036854775807", _int64, str)
BOOLEAN = Kind("true or false", is_java_true, _write_boolean)  # as Java, any text but true is false


class FieldTable(Generic[Value]):
    """Fields of one request or answer, in the order of the NamedTuple's attributes."""

    def __init__(self, kind: type[Value], *rows: HeaderField) -> None:
        attributes: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
        assert tuple(row.attribute for row in rows) == attributes
        defaults: dict[str, Any] = kind._field_defaults  # type: ignore[attr-defined]
        self._make: Callable[[Iterable[Any]], Value] = kind._make  # type: ignore[attr-defined]
        self._rows = rows
        self.parsers = {row.attribute: row.kind.parse for row in rows if row.kind.parse is not None}
        self._readers = [(row.name, row.kind.parse, defaults.get(row.attribute, _REQUIRED)) for row in rows]
        self._writers = [(row.name, row.kind.write) for row in rows]

    def name_of(self, attribute: str) -> str:
        """Return the name of the field that carries *attribute*."""
        return next(row.name for row in self._rows if row.attribute == attribute)

    def read(self, fields: Mapping[str, str]) -> Value:
        """Return the typed values.

        Raises:
            FieldIllegalError: a required field is missing, or a value is illegal. Facts: field, value, allowed.
        """
        values: list[Any] = []
        add, get, name, text = values.append, fields.get, "", None  # bound once: this loop runs for every message
        try:
            for name, parse, default in self._readers:
                text = get(name)
                if text is None:
                    if default is _REQUIRED:
                        raise ValueError("missing")
                    add(default)
                elif parse is None:
                    add(text)
                else:
                    add(parse(text))
        except ValueError:
            row = next(row for row in self._rows if row.name == name)
            raise field_illegal(name, text, row.kind.allowed, label=row.label) from None
        return self._make(values)

    def write(self, value: Value) -> dict[str, str]:
        """Return the fields of *value*. An attribute of None is left out."""
        return {name: write(item) for (name, write), item in zip(self._writers, value, strict=True) if item is not None}


def field_illegal(name: str, value: str | None, allowed: str, *, label: str = "") -> FieldIllegalError:
    """Return the error for the field *name*, which is missing (None) or has another value than *allowed*."""
    if value is not None and len(value) > _MAX_SHOWN:
        value = value[:_MAX_SHOWN] + "…"
    state = "is missing" if value is None else f"is {value!r}"
    message = f"{label or name} {state}; it must be {allowed}"
    return FieldIllegalError(message, field=name, value=value, allowed=allowed)
