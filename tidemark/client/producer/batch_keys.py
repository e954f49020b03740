"""The UNIQ_KEYs of a batch: each message has its own key, which consumers see as its `message_id`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

from tidemark.client.validation import require_batch_size
from tidemark.errors import PropertiesSizeExceededError
from tidemark.format.elements import Parts, encode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES
from tidemark.format.properties import UNIQ_KEY

if TYPE_CHECKING:
    from tidemark.client.message import Message

_UNIQUE_KEY = UNIQ_KEY.encode() + b"\x01%b\x02"


class KeyedBatch(NamedTuple):
    """A wire batch with the UNIQ_KEY of each of its messages."""

    packed: bytes
    request_id: str
    message_ids: Sequence[str]


def pack_batch(
    messages: Sequence[Message], request_id: str | None, unique_keys: UniqueKeys, *, max_size: int
) -> KeyedBatch:
    """Pack *messages* into a wire batch of at most *max_size* bytes in which each message has a UNIQ_KEY.

    With a *request_id*, or a UNIQ_KEY of the first message, the keys of the others are derived from it, so that the
    same call sends the same bytes. The keys do not count towards *max_size*: if they do not fit, the writer derives
    them.
    Raises as `Message.to_element`, `require_batch_size`; PropertiesSizeExceededError (fact: at).
    """
    elements = [message.to_element() for message in messages]
    own = [message.properties.get(UNIQ_KEY) if message.properties else None for message in messages]
    first_key = own[0] or request_id
    keys: Sequence[str]
    keyed: Sequence[Parts]
    if first_key is None and not any(own):
        keys, keyed = with_made_keys(elements, unique_keys)
    else:
        made = derived_keys(first_key, len(own)) if first_key else unique_keys.make_many(len(own))
        keys = [given or new for given, new in zip(own, made, strict=True)]
        keyed = with_unique_keys(elements, own, keys)
    request_id = request_id or (unique_keys.make() if own[0] else keys[0])
    packed = encode_elements(keyed)
    if len(packed) > max_size:
        packed = encode_elements(elements)
        made = derived_keys(first_key or request_id, len(own))
        keys = [given or new for given, new in zip(own, made, strict=True)]
    require_batch_size(elements, len(packed), max_size)
    return KeyedBatch(packed, request_id, keys)


class MadeKeys(Sequence[str]):
    """Consecutive keys of `UniqueKeys.reserve`; each one is formatted on access."""

    def __init__(self, head: str, first: int, count: int) -> None:
        self._head = head
        self._numbers = range(first, first + count)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return repr(list(self))

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [f"{self._head}{number:012X}" for number in self._numbers[index]]
        return f"{self._head}{self._numbers[index]:012X}"


def with_made_keys(elements: Sequence[Parts], unique_keys: UniqueKeys) -> tuple[MadeKeys, list[Parts]]:
    """Return new keys, and *elements* with them. It builds no str per key.

    Raises PropertiesSizeExceededError as `with_unique_keys`.
    """
    head, first = unique_keys.reserve(len(elements))
    entry = f"{UNIQ_KEY}\x01{head}%012X\x02".encode()
    keyed = [
        (body, properties + entry % number, flag) for number, (body, properties, flag) in enumerate(elements, first)
    ]
    keys = MadeKeys(head, first, len(elements))
    _require_room(keyed, keys)
    return keys, keyed


def derived_keys(first_key: str, count: int) -> list[str]:
    """Return the keys that the writer derives from *first_key*, the key of a batch's first message."""
    return [first_key, *(f"{first_key}#{number}" for number in range(1, count))]


def with_unique_keys(elements: Sequence[Parts], own: Sequence[str | None], keys: Sequence[str]) -> list[Parts]:
    """Return *elements* with *keys* among their properties, except elements that have their *own* key.

    Raises PropertiesSizeExceededError (fact: at) for a message whose properties have no room for its key.
    """
    keyed = [
        element if given else (element[0], element[1] + _UNIQUE_KEY % key.encode(), element[2])
        for element, given, key in zip(elements, own, keys, strict=True)
    ]
    _require_room(keyed, keys)
    return keyed


def _require_room(keyed: Sequence[Parts], keys: Sequence[str]) -> None:
    if max((len(properties) for _, properties, _ in keyed), default=0) <= MAX_PROPERTIES_SIZE_BYTES:
        return
    for at, (_, properties, _) in enumerate(keyed):
        size = len(properties)
        if size > MAX_PROPERTIES_SIZE_BYTES:
            raise PropertiesSizeExceededError(
                f"the properties of message {at} are {size:,} bytes with its UNIQ_KEY; the limit is "
                f"{MAX_PROPERTIES_SIZE_BYTES:,}: leave {len(_UNIQUE_KEY) - 2 + len(keys[at].encode())} bytes for "
                "the key, or give the message its own UNIQ_KEY",
                at=at,
                size=size,
                limit=MAX_PROPERTIES_SIZE_BYTES,
            )
