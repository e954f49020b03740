"""Records of a CommitLog's files, decoded: without a service, without a lock, of any RocketMQ store.

Damage is told and stepped over. Where the records end nothing is wrong: files are full-size from birth, and what lies
behind the last record may be zeros or a record that was cut off.
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
    """Messages and damage of one stretch, each ascending by place."""

    messages: list[dict[str, Any]]
    damages: list[Damage]


def open_log_folder(directory: Path) -> MappedFileQueue:
    """The CommitLog in *directory*, or in the store at *directory*, to be read only.

    raises ArgumentIllegalError where there is none
    """
    folder = directory / "commitlog" if (directory / "commitlog").is_dir() else directory
    size = size_on_disk(folder)
    if size is None:
        raise ArgumentIllegalError(f"no file of a CommitLog lies in {folder}", path=str(folder))
    return MappedFileQueue(folder, size)


def decode_log(log: MappedFileQueue, start: int | None) -> Iterator[Decoded]:
    """From *start* on, else from the log's first byte, to its last record.

    raises ArgumentIllegalError for a start that lies in no file
    """
    position = log.min_offset if start is None else start
    if not log.min_offset <= position < log.capacity_end:
        raise ArgumentIllegalError(
            f"{position} lies in no file: they begin at {log.min_offset} and end at {log.capacity_end}",
            physical_offset=position,
        )
    walk = LogWalk(log, position, Checker(crc=Crc.MARKS))
    held: list[Damage] = []  # damage only when a record follows; else the end
    for part in walk.parts(limit=log.capacity_end, floor=log.capacity_end):
        decoded = _decode(part)
        if len(part.requests):
            yield Decoded(decoded.messages, held + decoded.damages)
            held = []
        held += part.damages


def _decode(part: LogPart) -> Decoded:
    """Records of a part. A record that only its CRC condemns is damage of its own."""
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
