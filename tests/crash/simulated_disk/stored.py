"""A log's contents, read plainly: messages, batch by batch, from its first file to the end that recovery finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.integration.writer.harness import stored_places
from tidemark.format.properties import decode_properties
from tidemark.format.record import Record
from tidemark.format.sys_flag import SysFlag


class Message(NamedTuple):
    """One message of the log. number, index: its batch and its index there, from its body."""

    number: int
    part: int
    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    body: bytes
    keys: tuple[str, ...]  # the key index's keys of its record; only with the record's first message


def stored_messages(root: Path) -> list[Message]:
    """Return every message, in the order of the log."""
    return [message for place, record in stored_places(root) for message in _messages(place, record)]


def _messages(place: int, record: Record) -> Iterator[Message]:
    topic = record.topic.decode()
    own = decode_properties(record.properties)
    keys = (own["UNIQ_KEY"], *own.get("KEYS", "").split(" "))
    is_inner = record.sys_flag & SysFlag.INNER_BATCH
    for i, body in enumerate(_bodies(record.body) if is_inner else [record.body]):
        number, index, _ = body.split(b":", 2)
        yield Message(
            int(number), int(index), topic, record.queue_id, record.queue_offset + i, place, body, () if i else keys
        )


def _bodies(wire: bytes) -> Iterator[bytes]:
    """Yield the bodies of a wire batch (docs/format.md §3)."""
    at = 0
    while at < len(wire):
        size = int.from_bytes(wire[at : at + 4], "big")
        length = int.from_bytes(wire[at + 16 : at + 20], "big")
        yield wire[at + 20 : at + 20 + length]
        at += size
