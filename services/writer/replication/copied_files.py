"""The small files that the writer sends to its replicas, whole and after each change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tidemark.replication.member_files import STATE
from tidemark.store.paths import StorePaths

SNAPSHOT = "queue_offsets"


class CopiedFile(NamedTuple):
    """A file, and whether later bytes of the log need it: then it is sent before them."""

    path: Path
    is_needed: bool


def copied_files(paths: StorePaths) -> Mapping[str, CopiedFile]:
    """Return the files by the names that the protocol has for them.

    Tombstones come before topics, as the writer saves them: records of a deleted topic must not come back.
    """
    return {
        "tombstones.json": CopiedFile(paths.tombstones, True),
        "topics.json": CopiedFile(paths.topics, True),
        STATE: CopiedFile(paths.replication / STATE, True),
        SNAPSHOT: CopiedFile(paths.next_offsets, False),
        "delayOffset.json": CopiedFile(paths.delay_offsets, False),
        "consumerOffset.json": CopiedFile(paths.consumer_offsets, False),
    }


class FileChanges:
    """Finds the files that have changed since they were last sent on one stream."""

    def __init__(self, files: Mapping[str, CopiedFile]) -> None:
        self._files = files
        self._sent: dict[str, tuple[int, int, int]] = {}

    def take(self, *, needed_only: bool) -> Iterator[tuple[str, bytes]]:
        """Yield name and content of each changed file. Raises OSError."""
        for name, (path, is_needed) in self._files.items():
            if needed_only and not is_needed:
                continue
            signature = _signature(path)
            if signature is None or signature == self._sent.get(name):
                continue
            content = path.read_bytes()
            self._sent[name] = signature  # of a moment before: a change meanwhile is found at the next look
            yield name, content


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
