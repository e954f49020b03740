"""Decodes the records of a CommitLog's files: without a service, without a lock, of any RocketMQ store.

Damaged records are reported and skipped. The end of the records is not damage: files have their full size from the
start, and the bytes after the last record may be zeros or a truncated record.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tidemark.errors import ArgumentIllegalError
from tidemark.format.check import Checker, Crc
from tidemark.format.message import fault_reason
from tidemark.index.log_walk import Damage, LogPart, LogWalk
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.messages.message_rows import message_rows
from tidemark.read.pull import PulledPart
from tidemark.read.records import Records
from tidemark.store.mapped_file_queue import MappedFileQueue, size_on_disk


class Decoded(NamedTuple):
    """Messages and damage of a part of the log, each in ascending order of physical offset."""

    messages: list[dict[str, Any]]
    damages: list[Damage]


def open_log_folder(directory: Path) -> MappedFileQueue:
    """Open the CommitLog at *directory*, or of the store at *directory*, for reading.

    Raises ArgumentIllegalError if there is none.
    """
    folder = directory / "commitlog" if (directory / "commitlog").is_dir() else directory
    size = size_on_disk(folder)
    if size is None:
        raise ArgumentIllegalError(f"there is no CommitLog file in {folder}", path=str(folder))
    return MappedFileQueue(folder, size)


def decode_log(log: MappedFileQueue, start: int | None) -> Iterator[Decoded]:
    """Yield the log from *start*, or from its first byte, to its last record.

    Raises ArgumentIllegalError for a start that is in no file.
    """
    position = log.min_offset if start is None else start
    if not log.min_offset <= position < log.capacity_end:
        raise ArgumentIllegalError(
            f"{position} is not in a file: the log's files begin at {log.min_offset} and end at {log.capacity_end}",
            physical_offset=position,
        )
    walk = LogWalk(log, position, Checker(crc=Crc.MARKS))
    held: list[Damage] = []  # reported only if a record follows; otherwise it is the log's end
    for part in walk.parts(limit=log.capacity_end, floor=log.capacity_end):
        decoded = _decode(part)
        if len(part.requests):
            yield Decoded(decoded.messages, held + decoded.damages)
            held = []
        held += part.damages


def _decode(part: LogPart) -> Decoded:
    """Decode a part's records. A record whose only fault is its CRC is reported as damage, too."""
    rows = part.requests
    records = Records(part.buffer, rows["physical_offset"] - part.base_offset, rows)
    damages = [
        Damage(int(row["physical_offset"]), int(row["message_size"]), fault_reason(int(row["fault"])))
        for row in rows[rows["fault"] != 0]
    ]
    unwrapped = records.messages()
    pulled = PulledPart(records, unwrapped, records.right)
    numbers = unwrapped["record"].tolist()
    where = [_queue_of(part, rows[number]) for number in numbers]
    messages = [
        {"topic": topic, "queue_id": queue_id, **message}
        for (topic, queue_id), message in zip(where, message_rows(pulled, BodyEncoding.AUTO), strict=True)
    ]
    return Decoded(messages, damages)


def _queue_of(part: LogPart, row: Any) -> tuple[str, int]:
    at, length = int(row["topic_at"]), int(row["topic_length"])
    return part.buffer[at : at + length].tobytes().decode("utf-8", "replace"), int(row["queue_id"])
