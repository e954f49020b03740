"""MemberRole: whether this member is its group's writer, for programs beside the writer service."""

from __future__ import annotations

import os
from pathlib import Path

from tidemark.replication.member_files import IDENTITY, STATE
from tidemark.replication.stored_state import decode_state

_ALONE = 0


class MemberRole:
    """The role of the member with *folder*, `tidemark/replication` of its store. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._state = os.path.join(folder, STATE)
        self._identity = folder / IDENTITY
        self._seen: tuple[tuple[int, int, int] | None, int | None] = (None, _ALONE)

    def written_epoch(self) -> int | None:
        """Return the epoch in which this member is the writer; None for a replica, 0 for a store without replication.

        Another member may have been elected since, of which this one has not heard.
        """
        try:
            status = os.stat(self._state)
        except FileNotFoundError:
            return _ALONE
        signature = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._seen[0] != signature:
            self._seen = (signature, self._read())
        return self._seen[1]

    def _read(self) -> int | None:
        try:
            with open(self._state, "rb") as file:
                state = decode_state(file.read())
            identity = self._identity.read_text("ascii").strip()
        except (OSError, ValueError, KeyError, TypeError):  # it is being replaced, or damaged: then nothing is changed
            return None
        is_writer = state.writer is not None and state.writer.rpartition(".")[2] == identity
        return state.epoch if is_writer else None
