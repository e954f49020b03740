"""LostUnits: places of queues that pulls skipped, recorded in `tidemark/query/lost_units.jsonl` and the service's log.

The pipeline's ledger records damage of the CommitLog. A unit that does not point at its own message is damage of a
derived file, which only a reader of the queue finds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import structlog

from tidemark.read.records import REMOVED, Skipped

_log = structlog.get_logger()


class LostUnits:
    """Stores each place once, at most *limit* places. Safe for several threads.

    Args:
        may_write: return True in the process that owns the folder; the others only log.
    """

    def __init__(self, path: Path, *, limit: int, may_write: Callable[[], bool]) -> None:
        self._path = path
        self._limit = limit
        self._may_write = may_write
        self._lock = threading.Lock()
        self._places = {_key(entry): entry for entry in _entries(path)[:limit]}

    def all(self) -> list[dict[str, Any]]:
        """Return every place, by topic, queue and offset."""
        with self._lock:
            return [self._places[key] for key in sorted(self._places)]

    def note(self, topic: str, queue_id: int, skipped: Sequence[Skipped]) -> None:
        """Record places that a pull has skipped, except expired records."""
        with self._lock:
            for skip in skipped:
                place = (topic, queue_id, skip.queue_offset)
                if skip.reason != REMOVED and place not in self._places and len(self._places) < self._limit:
                    self._places[place] = entry = {
                        "topic": topic,
                        "queue_id": queue_id,
                        **skip._asdict(),
                        "found_ms": time.time_ns() // 1_000_000,
                    }
                    _log.warning("messages_skipped", **entry)
                    self._append(entry)

    def _append(self, entry: dict[str, Any]) -> None:
        """Append a line if this process may write; the pull is answered even if the disk is full."""
        if not self._may_write():
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.write(descriptor, orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
            finally:
                os.close(descriptor)
        except OSError as error:
            _log.warning("lost_units_not_written", path=str(self._path), error=str(error))


def _key(entry: dict[str, Any]) -> tuple[str, int, int]:
    return str(entry["topic"]), int(entry["queue_id"]), int(entry["queue_offset"])


def _entries(path: Path) -> list[dict[str, Any]]:
    """Return the entries of the file, without lines that a crash has torn."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:  # no file yet, or a folder that this process may not read
        return []
    found = []
    for line in lines:
        try:
            entry = orjson.loads(line)
            _key(entry)
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            continue
        found.append(entry)
    return found
