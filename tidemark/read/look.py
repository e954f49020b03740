"""Look: one request's reads of the store in one thread, which check each open file only once.

A file that is deleted or replaced during a look was there when the look began, so its bytes may be returned.
"""

from __future__ import annotations

import threading
from typing import Any

from tidemark.store.open_file import OpenFile


class _Thread(threading.local):
    """The look of a thread, which only this thread uses. depth: number of blocks that are in it; 0: there is none."""

    depth = 0
    checked: set[OpenFile]
    found: dict[object, Any]


_thread = _Thread()


class Look:
    """Makes the reads of a thread one look. A look within another one belongs to it."""

    def __enter__(self) -> None:
        if not _thread.depth:
            _thread.checked, _thread.found = set(), {}
        _thread.depth += 1

    def __exit__(self, *_: object) -> None:
        _thread.depth -= 1
        if not _thread.depth:
            del _thread.checked, _thread.found


_LOOK = Look()  # it has no state of its own, so one is enough


def one_look() -> Look:
    """Return the context of one look."""
    return _LOOK


def look_again() -> None:
    """Check all files again from now on, because one of them has expired."""
    if _thread.depth:
        _thread.checked.clear()
        _thread.found.clear()


def is_there(file: OpenFile) -> bool:
    """Return True if the file still had its name at the first check of this look, or now if there is no look."""
    if not _thread.depth:
        return not file.is_deleted
    if file in _thread.checked:
        return True
    if file.is_deleted:
        return False
    _thread.checked.add(file)
    return True


def note_there(file: OpenFile) -> OpenFile:
    """Return *file*, which was just opened by its name, so that this look does not check it."""
    if _thread.depth:
        _thread.checked.add(file)
    return file


def note_found(owner: object, what: Any) -> None:
    """Keep *what* this look has read of *owner*; without a look it is dropped."""
    if _thread.depth:
        _thread.found[owner] = what


def found_in_look(owner: object) -> Any:
    """Return what `note_found` has kept for *owner* in this look; otherwise None."""
    return _thread.found.get(owner) if _thread.depth else None
