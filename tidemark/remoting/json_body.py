"""Typed access to the members of a JSON body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from tidemark.remoting.field_table import field_illegal
from tidemark.remoting.frame import Buffer

_REQUIRED = object()


class JsonObject:
    """An object of a body. A member that is missing or null takes the default; without one it is refused."""

    def __init__(self, value: Any, path: str = "body") -> None:
        if type(value) is not dict:
            raise field_illegal(path, _shown(value), "an object")
        self._members = value
        self._path = path

    def text(self, name: str, default: Any = _REQUIRED) -> str:
        return self._typed(name, default, str, "a text")  # type: ignore[no-any-return]

    def flag(self, name: str, default: Any = _REQUIRED) -> bool:
        return self._typed(name, default, bool, "true or false")  # type: ignore[no-any-return]

    def integer(self, name: str, default: Any = _REQUIRED, *, bits: int = 32) -> int:
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        allowed = f"an integer from {low} to {high}"
        value: int = self._typed(name, default, int, allowed)
        if not low <= value <= high:
            raise field_illegal(f"{self._path}.{name}", str(value), allowed)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of the array *name*; () without it."""
        values = self._typed(name, [], list, "an array of texts")
        if not all(type(value) is str for value in values):
            raise field_illegal(f"{self._path}.{name}", _shown(values), "an array of texts")
        return tuple(values)

    def objects(self, name: str) -> Iterator[JsonObject]:
        """Yield the objects of the array *name*; none without it."""
        for number, value in enumerate(self._typed(name, [], list, "an array of objects")):
            yield JsonObject(value, f"{self._path}.{name}[{number}]")

    def object(self, name: str) -> JsonObject:
        return JsonObject(self._members.get(name), f"{self._path}.{name}")

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield name and value of each member, which must be a text."""
        return ((name, self.text(name)) for name in self._members)

    def _typed(self, name: str, default: Any, kind: type, allowed: str) -> Any:
        value = self._members.get(name)
        if value is None and default is not _REQUIRED:
            return default
        if type(value) is not kind:
            raise field_illegal(f"{self._path}.{name}", _shown(value), allowed)
        return value


def parse_body(body: Buffer) -> JsonObject:
    """Return the object of a JSON body.

    Raises:
        FieldIllegalError: it is no JSON, nested too deeply, or no object.
    """
    try:
        return JsonObject(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise field_illegal("body", f"no JSON ({error})", "a JSON object") from None


def _shown(value: Any) -> str | None:
    """Return *value* for an error. Arrays and objects are only named: they can be deeper than encoders allow."""
    if isinstance(value, list):
        return "an array"
    if isinstance(value, dict):
        return "an object"
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()
