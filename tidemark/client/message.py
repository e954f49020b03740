"""Message: a message to send, and its form in a wire batch (docs/format.md §3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from tidemark.client.unknown_keywords import suggests_keywords
from tidemark.client.validation import require_property_types, require_sendable_properties
from tidemark.errors import ArgumentIllegalError, PropertiesIllegalError, PropertiesSizeExceededError
from tidemark.format.elements import Element
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES
from tidemark.format.properties import DELAY, KEY_SEPARATOR, KEYS, TAGS, encode_properties
from tidemark.format.tags import MAX_DELAY_LEVEL
from tidemark.format.text_rules import require_findable, require_key, require_tag
from tidemark.format.topic_name import DEAD_LETTER_PREFIX, RETRY_PREFIX


@dataclass(frozen=True, slots=True)
class Message:
    """One message to send. body: bytes, or text that is sent as UTF-8.

    tag          the tag that pulls can filter by
    keys         keys for lookup; the first one chooses the queue. A str is one key
    properties   further names and values; neither may be empty or contain U+0001 or U+0002
    delay_level  1 to 18: deliver after 1 s, 5 s, 10 s, ... 2 h (RocketMQ's levels); a greater level counts as 18
    flag         signed 32-bit number for the application; it is stored and not interpreted
    """

    topic: str
    body: bytes | str
    _: KW_ONLY
    tag: str | None = None
    keys: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    delay_level: int = 0
    flag: int = 0

    @property
    def first_key(self) -> str | None:
        """Return the key that chooses the queue; None if there is no key."""
        keys = self.keys
        return (keys if isinstance(keys, str) else keys[0]) if keys else None

    def to_element(self) -> Element:
        """Return the element of a wire batch for this message.

        raises PropertiesIllegalError, PropertiesSizeExceededError, InnerBatchIllegalError, ArgumentIllegalError;
        TypeError for a body that is neither bytes nor str
        """
        if type(self.flag) is not int and (isinstance(self.flag, bool) or not isinstance(self.flag, int)):
            raise TypeError(f"flag must be an int, not {self.flag!r} of type {type(self.flag).__name__}")
        if not -(1 << 31) <= self.flag < 1 << 31:
            raise ArgumentIllegalError(f"flag is {self.flag}; it must be from -2^31 to 2^31 - 1", argument="flag")
        return Element(_bytes_of(self.body), self._encoded_properties(), self.flag)

    def _encoded_properties(self) -> bytes:
        if type(self.properties) is not dict and not isinstance(self.properties, Mapping):  # isinstance alone is slow
            kind = type(self.properties).__name__
            raise TypeError(f"properties must be a mapping of str to str, not {self.properties!r} of type {kind}")
        own = self._own_properties()
        if not own and not self.properties:
            return b""
        if twice := own.keys() & self.properties.keys():
            raise PropertiesIllegalError("a property is given twice: as a field and in properties", name=min(twice))
        properties = {**own, **self.properties}
        require_property_types(properties)
        require_sendable_properties(properties)
        if not self._comes_back:
            require_findable(properties)
        try:
            encoded = encode_properties(properties)
        except UnicodeEncodeError as error:
            raise PropertiesIllegalError("a property contains an unpaired surrogate") from error
        if len(encoded) > MAX_PROPERTIES_SIZE_BYTES:
            raise PropertiesSizeExceededError(
                f"the message's properties are {len(encoded):,} bytes; the limit is {MAX_PROPERTIES_SIZE_BYTES:,}",
                size=len(encoded),
                limit=MAX_PROPERTIES_SIZE_BYTES,
            )
        return encoded

    @property
    def _comes_back(self) -> bool:
        """Return True for a message of a retry or dead-letter topic.

        Such a message keeps its tag and keys, even if an earlier version or another client wrote them.
        """
        return self.topic.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX))

    def _findable(self, require: Callable[[str], str], text: str) -> str:
        return text if self._comes_back and isinstance(text, str) else require(text)

    def _joined_keys(self) -> str:
        _require_keys(self.keys)
        return KEY_SEPARATOR.join(self._findable(require_key, key) for key in self.keys)

    def _own_properties(self) -> dict[str, str]:
        own = {}
        if self.tag is not None and self.tag != "":
            own[TAGS] = self._findable(require_tag, self.tag)
        if isinstance(self.keys, str):
            own |= {KEYS: self._findable(require_key, self.keys)} if self.keys else {}
        elif self.keys is not None and self.keys != ():
            own |= {KEYS: joined} if (joined := self._joined_keys()) else {}
        if type(self.delay_level) is not int:
            raise TypeError(
                f"delay_level must be an int, not {self.delay_level!r} of type {type(self.delay_level).__name__}"
            )
        if self.delay_level < 0:
            raise ArgumentIllegalError("delay_level is negative; it must be 0 to 18", argument="delay_level")
        if self.delay_level:
            own[DELAY] = str(min(self.delay_level, MAX_DELAY_LEVEL))
        return own


Message.__init__ = suggests_keywords(Message.__init__)  # type: ignore[method-assign]  # generated by dataclass


def _bytes_of(body: object) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytearray | memoryview):
        return bytes(body)
    raise TypeError(f"body must be bytes or str, not {type(body).__name__}")


def _require_keys(keys: Sequence[str]) -> None:
    if not isinstance(keys, Sequence) or isinstance(keys, bytes | bytearray | memoryview):
        raise TypeError(f"keys must be a str, or a list or tuple of str, not {keys!r} of type {type(keys).__name__}")
