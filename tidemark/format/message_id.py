"""Message ids (format.md §2): the offset message id is a place in a store; a client generates the UNIQ_KEY."""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import secrets
import struct
import threading
import time
from typing import NamedTuple

from tidemark.format.host import Host, decode_host

_OFFSET = struct.Struct(">q")
_ELEMENT_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_UNIQUE_TAIL = struct.Struct(">HiIH")  # pid, process tag, milliseconds of the month, counter


class OffsetMessageId(NamedTuple):
    """Store and place of a record."""

    store_host: Host
    physical_offset: int


def encode_offset_message_id(host: bytes, physical_offset: int) -> str:
    """Return upper-case hex of *host* (8 or 20 bytes) and the offset: 32 or 56 characters."""
    return (host + _OFFSET.pack(physical_offset)).hex().upper()


def decode_offset_message_id(text: str) -> OffsetMessageId:
    """Decode an offset message id. Raises ValueError if *text* is not one."""
    raw = _unhex(text)
    return OffsetMessageId(decode_host(raw[:-8]), _OFFSET.unpack(raw[-8:])[0])


def decode_message_id(text: str) -> tuple[OffsetMessageId, int | None]:
    """Decode an offset message id that may name an element of an inner batch: ``{offset message id}-{number from 0}``.

    Returns:
        the id of the record and the element's number; None if the id has none.

    Raises:
        ValueError: *text* is not such an id.
    """
    record, hyphen, number = text.partition("-")
    if hyphen and not _ELEMENT_NUMBER.fullmatch(number):
        raise ValueError(f"an element's number must be at most 9 digits without leading zeros, not {number!r}")
    return decode_offset_message_id(record), int(number) if hyphen else None


def _unhex(text: str) -> bytes:
    raw = bytes.fromhex(text)  # skips blanks
    if len(text) not in (32, 56) or 2 * len(raw) != len(text):
        raise ValueError(f"a message id must have 32 or 56 hex digits, not {len(text)} characters")
    return raw


class UniqueKey(NamedTuple):
    """Contents of a UNIQ_KEY. born_ms: epoch milliseconds."""

    address: str
    pid: int
    born_ms: int
    counter: int


def _month_start_ms(now_s: float) -> int:
    now = datetime.datetime.fromtimestamp(now_s)  # noqa: DTZ006 - the peer counts from the local month
    return int(now.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)


class UniqueKeys:
    """Generator of UNIQ_KEYs of this process. Thread-safe.

    A random process tag distinguishes two processes with the same host and pid. Milliseconds and counter together only
    increase: if more than 65,536 keys are generated within a millisecond, they use the next one's numbers.
    """

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._head = ipaddress.ip_address(address).packed
        self._tag = struct.unpack(">i", secrets.token_bytes(4))[0]
        self._prefix, self._prefix_pid = "", -1  # the keys' common prefix, which contains the process id
        self._next = 0  # milliseconds and counter of the next key, 48 bits
        self._lock = threading.Lock()
        self._month_ms = 0
        self._next_month_ms = 0

    def _begin_month(self, now_ms: int) -> None:
        self._month_ms = _month_start_ms(now_ms / 1000)
        self._next_month_ms = _month_start_ms(self._month_ms / 1000 + 32 * 86400)
        self._next = 0

    def make(self) -> str:
        """Return a new key: 32 hex digits (56 for an IPv6 address)."""
        head, number = self.reserve(1)
        return f"{head}{number:012X}"

    def make_many(self, count: int) -> list[str]:
        """Return *count* new keys."""
        head, first = self.reserve(count)
        return [f"{head}{number:012X}" for number in range(first, first + count)]

    def reserve(self, count: int) -> tuple[str, int]:
        """Reserve *count* new keys. Return their common prefix and the number of the first one.

        Each key is the prefix and its number in 12 hex digits; the numbers are consecutive.
        """
        with self._lock:
            now_ms = int(time.time() * 1000)
            if now_ms >= self._next_month_ms:
                self._begin_month(now_ms)
            first = (now_ms - self._month_ms) << 16  # negative if the clock was set back into the previous month
            first = max(first, self._next)
            self._next = first + count
        pid = os.getpid()
        if pid != self._prefix_pid:
            self._prefix = (self._head + struct.pack(">Hi", pid & 0xFFFF, self._tag)).hex().upper()
            self._prefix_pid = pid
        return self._prefix, first


def decode_unique_key(text: str, *, now_ms: int | None = None) -> UniqueKey:
    """Decode a UNIQ_KEY. Raises ValueError if *text* is not one. *now_ms* selects the current or the previous month."""
    raw = _unhex(text)
    pid, _, milliseconds, counter = _UNIQUE_TAIL.unpack(raw[-12:])
    now = int(time.time() * 1000) if now_ms is None else now_ms
    month = _month_start_ms(now / 1000)
    born = month + milliseconds
    if born >= now:
        born = _month_start_ms(month / 1000 - 86400) + milliseconds
    return UniqueKey(str(ipaddress.ip_address(raw[:-12])), pid, born, counter)
