"""Messages of a soak: a name identifies its sender, and the whole body follows from the name."""

from __future__ import annotations

import zlib
from typing import NamedTuple

from tests.soak.history import content_of

ORDERS, BUNDLES, LEDGER = "orders", "bundles", "ledger"
QUEUES = {ORDERS: 4, BUNDLES: 2, LEDGER: 2}
FLEETING, FLEETING_BUNDLES = "fleeting", "fleeting-bundles"  # deleted and created again during the soak
CHURNED = {FLEETING: 2, FLEETING_BUNDLES: 1}
BATCH_TOPICS = frozenset({BUNDLES, FLEETING_BUNDLES})
_FILLER = bytes(range(256)) * 160
_SEPARATOR = b"|"


class Named(NamedTuple):
    """A message to send. Its name is also its key."""

    name: str
    body: bytes

    @property
    def content(self) -> str:
        """Return its identity in the history."""
        return content_of(self.name, self.body)


def named(name: str) -> Named:
    """Return the message of this name: usually short, sometimes up to 40 KB."""
    number = zlib.crc32(name.encode())
    length = number % 40_000 if number % 128 == 0 else number % 400
    return Named(name, name.encode() + _SEPARATOR + _FILLER[number % 256 :][:length])


def content_of_body(body: bytes) -> str:
    """Return the content of a message as it was read."""
    name, _, _ = body.partition(_SEPARATOR)
    return content_of(name[:64].decode(errors="replace"), body)


def is_keyed(topic: str) -> bool:
    """Return True if its messages are found by key: the index has no keys of inner batches."""
    return topic not in BATCH_TOPICS


def next_name(client: str, number: int) -> str:
    """Return the name of a client's message number *number*."""
    return f"{client}-{number}"
