"""Message: what a program sends, and its form in a wire batch (docs/format.md §3)."""

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
    """One message. body: bytes, or text to be sent as UTF-8.

    tag          what pulls filter by
    keys         found again by lookup; the first one chooses the queue. A text is one key
    properties   further names and values, neither empty nor with U+0001 or U+0002
    delay_level  1 to 18: delivered after 1 s, 5 s, 10 s, ... 2 h (RocketMQ's levels); greater ones count as 18
    flag         a number of the sender's, carried and not interpreted: 32 bits, signed
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
        """The key that chooses the queue."""
        keys = self.keys
        return (keys if isinstance(keys, str) else keys[0]) if keys else None

    def to_element(self) -> Element:
        """Its element of a wire batch.

        raises PropertiesIllegalError, PropertiesSizeExceededError, InnerBatchIllegalError, ArgumentIllegalError;
        TypeError for a body that is neither bytes nor text
        """
        if type(self.flag) is not int and (isinstance(self.flag, bool) or not isinstance(self.flag, int)):
            raise TypeError(f"flag is an int, not {self.flag!r} of type {type(self.flag).__name__}")
        if not -(1 << 31) <= self.flag < 1 << 31:
            raise ArgumentIllegalError(f"flag is {self.flag}, and has 32 bits: -2^31 to 2^31 - 1", argument="flag")
        return Element(_bytes_of(self.body), self._encoded_properties(), self.flag)

    def _encoded_properties(self) -> bytes:
        if type(self.properties) is not dict and not isinstance(self.properties, Mapping):  # the second is slow
            kind = type(self.properties).__name__
            raise TypeError(f"properties are a mapping of texts (str) to texts, not {self.properties!r} of type {kind}")
        own = self._own_properties()
        if not own and not self.properties:
            return b""
        if twice := own.keys() & self.properties.keys():
            raise PropertiesIllegalError("a property is given twice", name=min(twice))
        properties = {**own, **self.properties}
        require_property_types(properties)
        require_sendable_properties(properties)
        if not self._comes_back:
            require_findable(properties)
        try:
            encoded = encode_properties(properties)
        except UnicodeEncodeError as error:
            raise PropertiesIllegalError("a property holds half of a surrogate pair") from error
        if len(encoded) > MAX_PROPERTIES_SIZE_BYTES:
            raise PropertiesSizeExceededError(
                f"a message's properties are {len(encoded):,} bytes, and at most {MAX_PROPERTIES_SIZE_BYTES:,} fit",
                size=len(encoded),
                limit=MAX_PROPERTIES_SIZE_BYTES,
            )
        return encoded

    @property
    def _comes_back(self) -> bool:
        """A message that failed keeps its tag and keys, whatever an earlier version or another client made of them."""
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
                f"delay_level is an int, not {self.delay_level!r} of type {type(self.delay_level).__name__}"
            )
        if self.delay_level < 0:
            raise ArgumentIllegalError("delay_level is negative", argument="delay_level")
        if self.delay_level:
            own[DELAY] = str(min(self.delay_level, MAX_DELAY_LEVEL))
        return own


Message.__init__ = suggests_keywords(Message.__init__)  # type: ignore[method-assign]  # the one that dataclass made


def _bytes_of(body: object) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytearray | memoryview):
        return bytes(body)
    raise TypeError(f"a body is bytes or text, not {type(body).__name__}")


def _require_keys(keys: Sequence[str]) -> None:
    if not isinstance(keys, Sequence) or isinstance(keys, bytes | bytearray | memoryview):
        raise TypeError(f"keys are texts (str) in a list or tuple, not {keys!r} of type {type(keys).__name__}")
