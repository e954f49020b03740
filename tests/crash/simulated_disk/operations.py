"""A program's operations on the files below a folder: one entry for each system call or mapped store, in order.

Files are identified by number, not by name: a name may lead to another file later, and a file may have none.
"""

from __future__ import annotations

from typing import NamedTuple


class Create(NamedTuple):
    """open(O_CREAT) of a new name."""

    path: str
    file: int


class Write(NamedTuple):
    """pwrite, or one aligned store through a mapping."""

    file: int
    at: int
    data: bytes


class Resize(NamedTuple):
    """ftruncate. A write beyond the end is a Write and a Resize."""

    file: int
    size: int


class Sync(NamedTuple):
    """fsync or fdatasync of a file: its bytes and its size are on the disk when it returns."""

    file: int


class FailedSync(NamedTuple):
    """The same, with an error: the unsynced data never reaches the disk, though the cache still shows it."""

    file: int


class Rename(NamedTuple):
    """rename of a file or a folder, over an existing entry or none."""

    source: str
    target: str


class Unlink(NamedTuple):
    """unlink."""

    path: str


class MakeFolder(NamedTuple):
    """mkdir."""

    path: str


class RemoveFolder(NamedTuple):
    """rmdir."""

    path: str


class SyncFolder(NamedTuple):
    """fsync of a folder: its entries are on the disk when it returns."""

    path: str


class Note(NamedTuple):
    """No system call, but a fact that clients know from here on (see promises.py)."""

    what: str
    about: object


Operation = (
    Create | Write | Resize | Sync | FailedSync | Rename | Unlink | MakeFolder | RemoveFolder | SyncFolder | Note
)
