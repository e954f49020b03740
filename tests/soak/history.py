"""The history of a soak: each client's requests, their times, and the answers. One JSON line an operation.

Times are seconds of one monotonic clock, [invoked, completed]: an operation took effect somewhere between. A message is
identified by its *content*: its name and its body's CRC, so that a changed body is another content.
"""

from __future__ import annotations

import random
import threading
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import orjson

from tests.soak.group_events import GROUP_KINDS, GroupEvent, Handed

UNKNOWN, ACKNOWLEDGED, REFUSED = "UNKNOWN", "ACKNOWLEDGED", "REFUSED"  # outcomes of an Append
OK, UNAVAILABLE = "OK", "UNAVAILABLE"  # outcomes of an Answer, in addition to the reasons of problem+json
NOT_FOUND, NOT_YET_VISIBLE = "NOT_FOUND", "NOT_YET_VISIBLE"


def content_of(name: str, body: bytes) -> str:
    """Return the identity of a message."""
    return intern(f"{name}/{zlib.crc32(body):08x}")


@dataclass(frozen=True, slots=True)
class Append:
    """One batch, from its first attempt to the answer of the last. completed None: its outcome was never known.

    sequence          the producer's number of this send, if it promises its order; otherwise None
    physical_offsets  of each record: one a message, or one for a whole inner batch
    """

    client: str
    topic: str
    queue_id: int
    invoked: float
    completed: float | None
    outcome: str
    contents: tuple[str, ...]
    sequence: int | None = None
    expected_next_offset: int | None = None
    actual_next_offset: int | None = None  # from NEXT_OFFSET_MISMATCH
    queue_offset: int | None = None
    physical_offsets: tuple[int, ...] = ()
    end_physical_offset: int | None = None
    store_ms: int | None = None
    duplicate: bool = False
    term: int | None = None
    attempts: int = 1
    reason: str = ""


class Seen(NamedTuple):
    """A message as a reader had it. end_offset: the end of its record, if the reader knows it."""

    queue_id: int
    queue_offset: int
    physical_offset: int
    store_ms: int
    content: str
    end_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the query service. kind: pull, records, by_id, by_key, bounds, watermark or offset_by_time.

    final      read after the faults had ended, when everything was visible
    wanted     the content that a lookup requested
    skipped    records that were left out because they failed their check
    """

    client: str
    kind: str
    invoked: float
    completed: float
    outcome: str
    topic: str = ""
    queue_id: int | None = None
    final: bool = False
    term: int | None = None
    watermark: int | None = None
    committed: int | None = None
    min_offset: int | None = None
    max_offset: int | None = None
    requested_offset: int | None = None
    next_offset: int | None = None
    seen: tuple[Seen, ...] = ()
    wanted: str | None = None
    skipped: int = 0
    time_ms: int | None = None
    boundary: str | None = None
    offset: int | None = None
    store_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the services, planned or (action `ended`) spontaneous."""

    targets: tuple[str, ...]
    action: str
    at: float
    detail: str = ""


Operation = Append | Answer | Fault | GroupEvent
_KINDS: dict[str, type[Operation]] = {"append": Append, "answer": Answer, "fault": Fault, **GROUP_KINDS}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class HistoryFile:
    """A file that collects the operations of many threads. Only the latest acknowledged appends stay in memory.

    Each operation is one unbuffered write, so that a killed process has recorded everything that it acted on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recent: deque[Append] = deque(maxlen=500)
        self._file = path.open("wb", buffering=0)
        self._lock = threading.Lock()

    def add(self, operation: Operation) -> None:
        """Write *operation*."""
        line = orjson.dumps(
            {"is": _NAMES[type(operation)], **_fields(operation)}, default=tuple, option=orjson.OPT_APPEND_NEWLINE
        )
        with self._lock:
            self._file.write(line)
            if isinstance(operation, Append) and operation.outcome == ACKNOWLEDGED:
                self.recent.append(operation)

    def pick_recent(self, choice: random.Random) -> Append | None:
        """Return one of the latest acknowledged appends; None while there is none."""
        with self._lock:
            return choice.choice(self.recent) if self.recent else None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


def _fields(operation: Operation) -> dict[str, object]:
    """Return the fields without those at their defaults, because a history is long."""
    fields = type(operation).__dataclass_fields__
    values = {name: getattr(operation, name) for name in fields}
    return {name: value for name, value in values.items() if value != fields[name].default}


def read_history(path: Path) -> Iterator[Operation]:
    """Yield the operations of a history file in the order in which they completed.

    The last line of a killed process may be incomplete; it is left out.
    """
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield _operation(orjson.loads(line))


def read_histories(folder: Path) -> Iterator[Operation]:
    """Yield the operations of every process of a soak: its own, and those of the consumer processes."""
    for path in sorted(folder.glob("history*.jsonl")):
        yield from read_history(path)


def _operation(fields: dict[str, Any]) -> Operation:
    kind = _KINDS[fields.pop("is")]
    for name, value in fields.items():
        match name, value:
            case "contents", list():
                fields[name] = tuple(intern(content) for content in value)
            case "seen", list():
                fields[name] = tuple(Seen._make((*row[:4], intern(row[4]), *row[5:])) for row in value)
            case "messages", list():
                fields[name] = tuple(_handed(row) for row in value)
            case "message", list():
                fields[name] = _handed(value)
            case "offsets", list():
                fields[name] = tuple(tuple(row) for row in value)
            case _, list():
                fields[name] = tuple(value)
    return kind(**fields)


def _handed(row: list[Any]) -> Handed:
    return Handed._make((intern(row[0]), row[1], row[2], intern(row[3]), *row[4:]))
