"""ReloadedFiles: contents of files that settings name, read again when a file changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from tidemark.errors import StoreError

Stamp = tuple[int, int, int] | None
OnReload = Callable[[StoreError | None], None]
Held = TypeVar("Held")
_Held_co = TypeVar("_Held_co", covariant=True)


class WatchedFiles(Protocol[_Held_co]):
    """Files and how to read them."""

    def load(self) -> _Held_co:
        """Read the files. Raises a StoreError that names the invalid file."""

    def stamps(self) -> tuple[Stamp, ...]:
        """Return stamps that differ after a file has changed."""


class ReloadedFiles(Generic[Held]):
    """Current contents of files. The constructor raises a StoreError if they are invalid.

    every_ms is the interval of `follow`. The callback is called after each change: with None if the new contents
    are in use, with the fault if they are invalid and the previous contents stay in use.
    """

    def __init__(self, files: WatchedFiles[Held], *, every_ms: int, on_reload: OnReload) -> None:
        self._files = files
        self._every_s = every_ms / 1000
        self._on_reload = on_reload
        self._seen = files.stamps()
        self.current: Held = files.load()
        self.reload_failed = False

    def look(self) -> None:
        """Read the files if they have changed. Call it from one thread only."""
        stamps = self._files.stamps()
        if stamps == self._seen:
            return
        fault: StoreError | None = None
        loaded: Held | None = None
        try:
            loaded = self._files.load()
        except StoreError as error:
            fault = error
        if self._files.stamps() != stamps:
            return  # a change is in progress; the next call sees its end
        self._seen = stamps
        if loaded is not None:
            self.current = loaded
        self.reload_failed = fault is not None
        self._on_reload(fault)

    async def follow(self) -> None:
        """Call `look` at each interval, until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            await asyncio.to_thread(self.look)


def stamps_of(paths: Iterable[Path | None]) -> tuple[Stamp, ...]:
    """Return the stamps of the paths that are not None."""
    return tuple(_stamp(path) for path in paths if path is not None)


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
