"""The newest state of the group that this member has heard of: kept by its writer service, read by other programs."""

from __future__ import annotations

import threading
from pathlib import Path

from tidemark.replication.group_state import GroupState
from tidemark.replication.member_files import STATE, MemberFiles
from tidemark.replication.stored_state import decode_state


class KnownState:
    """The state in memory and in the member's file. Thread-safe; no other object of the process changes the file.

    Raises CorruptStoreError if the file and its copy are both damaged.
    """

    def __init__(self, files: MemberFiles) -> None:
        self._files = files
        self._adopting = threading.Lock()
        self._state = files.state()

    def read(self) -> GroupState | None:
        """Return the state; None if this member has heard of none."""
        return self._state

    def adopt(self, state: GroupState) -> GroupState:
        """Keep *state* durably, unless it is older than the known one; return the newest. Raises OSError."""
        with self._adopting:
            if self._state is None or self._state.age < state.age:
                self._files.save_state(state)
                self._state = state
            return self._state


def read_known_state(folder: Path) -> GroupState | None:
    """Return the state that the member with *folder* has saved; None without one, or while it cannot be read."""
    try:
        return decode_state((folder / STATE).read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        return None
