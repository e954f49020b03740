"""The files of a member: its identity, the greatest epoch that it has promised, its log's epochs, the group's state.

They are in `tidemark/replication` of the member's directory. Each has a checked copy, because none of them can be found
again from the log.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

from tidemark.errors import CorruptStoreError
from tidemark.replication.epochs import Epochs, decode_epochs, encode_epochs
from tidemark.replication.group_state import GroupState
from tidemark.replication.stored_state import decode_state, encode_state
from tidemark.store.originals.checked_copy import FileRules, heal, is_sound, write_checked
from tidemark.store.storage import Storage

IDENTITY, PROMISED, EPOCHS, STATE = "identity", "promised", "epochs", "group.json"
_IDENTITY_BYTES = 16


def _parse_identity(data: bytes) -> str:
    if re.fullmatch(rb"[0-9a-f]{32}\n", data) is None:
        raise ValueError("expected 32 hexadecimal digits")
    return data[:-1].decode()


def _parse_number(data: bytes) -> int:
    if re.fullmatch(rb"[0-9]{1,18}\n", data) is None:
        raise ValueError("expected a number")
    return int(data)


def _parse_epochs(data: bytes) -> Epochs:
    try:
        return decode_epochs(data)
    except CorruptStoreError as error:
        raise ValueError(str(error)) from error


EPOCHS_FORM = FileRules(_parse_epochs, lambda _: None)  # without a version: a cut shortens the list
_RULES = {
    IDENTITY: FileRules(_parse_identity, lambda _: None),
    PROMISED: FileRules(_parse_number, lambda number: (number,)),
    EPOCHS: EPOCHS_FORM,
    STATE: FileRules(decode_state, lambda state: state.age),
}


class MemberFiles:
    """The files in *folder*. Only the process that has the store's lock uses them.

    A change is durable when the method returns. Raises OSError if a file cannot be written.
    """

    def __init__(self, folder: Path, storage: Storage) -> None:
        self._folder = folder
        self._storage = storage

    def identity(self) -> str:
        """Return the member's identity, which is made at the first call. Raises as `promised`."""
        found: str | None = self._load(IDENTITY)
        if found is None:
            found = secrets.token_hex(_IDENTITY_BYTES)
            self._save(IDENTITY, f"{found}\n".encode())
        return found

    def promised(self) -> int:
        """Return the greatest epoch that the member has promised; 0 if it has promised none.

        Raises:
            CorruptStoreError: the file and its copy are both damaged.
        """
        return self._load(PROMISED) or 0

    def promise(self, epoch: int) -> None:
        """Never follow a writer of an epoch below *epoch* again."""
        self._save(PROMISED, b"%d\n" % epoch)

    def epochs(self) -> Epochs:
        """Return the epochs of the log. Raises as `promised`."""
        return self._load(EPOCHS) or ()

    def save_epochs(self, epochs: Epochs) -> None:
        """Replace the epochs of the log. A line must be saved before the first byte of its epoch."""
        self._save(EPOCHS, encode_epochs(epochs))

    def state(self) -> GroupState | None:
        """Return the newest state of the group that this member knows; None without one. Raises as `promised`."""
        found: GroupState | None = self._load(STATE)
        return found

    def save_state(self, state: GroupState) -> None:
        """Replace the state of the group."""
        self._save(STATE, encode_state(state))

    def names_this_member(self) -> bool:
        """Return True if the known state names this member as the writer. Raises as `promised`."""
        state, identity = self.state(), self._load(IDENTITY)
        return state is not None and state.writer is not None and state.writer.rpartition(".")[2] == identity

    def _load(self, name: str) -> Any:
        path, rules = self._folder / name, _RULES[name]
        data = heal(path, rules, self._storage).data
        if data is None:
            return None
        if not is_sound(data, rules):
            raise CorruptStoreError(
                f"{path} is damaged and has no copy: restore it from a backup, or seed the member again", path=str(path)
            )
        return rules.parse(data)

    def _save(self, name: str, data: bytes) -> None:
        write_checked(self._folder / name, data, self._storage, keep_previous=False)
