"""Message: what a program sends, and its form in a wire batch (spec 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidemark.errors import PropertiesIllegalError, PropertiesSizeExceededError
from tidemark.format.elements import Element
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES
from tidemark.format.properties import KEY_SEPARATOR, KEYS, TAGS, encode_properties


@dataclass(frozen=True, slots=True)
class Message:
    """One message. body: bytes, or text to be sent as UTF-8; keys: found again by lookup; tag: what pulls filter by.

    properties  further names and values, neither empty nor with U+0001 or U+0002
    flag        a number of the sender's, carried and not interpreted
    """

    body: bytes | str
    tag: str | None = None
    keys: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    flag: int = 0

    def to_element(self) -> Element:
        """Its element of a wire batch; PropertiesIllegalError, PropertiesSizeExceededError."""
        body = self.body.encode() if isinstance(self.body, str) else self.body
        properties = encode_properties(self._checked_properties())
        if len(properties) > MAX_PROPERTIES_SIZE_BYTES:
            raise PropertiesSizeExceededError("a message's properties are too long", limit=MAX_PROPERTIES_SIZE_BYTES)
        return Element(body, properties, self.flag)

    def _checked_properties(self) -> dict[str, str]:
        own = {TAGS: self.tag or "", KEYS: _joined(self.keys)}
        named = {name: value for name, value in own.items() if value}
        if twice := named.keys() & self.properties.keys():
            raise PropertiesIllegalError("a property is given twice", name=min(twice))
        for name, value in (*named.items(), *self.properties.items()):
            _require_writable(name, value)
        return {**named, **self.properties}


def _joined(keys: Sequence[str]) -> str:
    for key in keys:
        if not key or KEY_SEPARATOR in key:
            raise PropertiesIllegalError("a key is empty or holds a space", key=key)
    return KEY_SEPARATOR.join(keys)


def _require_writable(name: str, value: str) -> None:
    if not name or not value or any(separator in name + value for separator in "\x01\x02"):
        raise PropertiesIllegalError("a property's name or value is empty or holds U+0001 or U+0002", name=name)
