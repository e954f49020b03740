"""ReloadedFiles: what files that settings name hold, read again when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from tidemark.errors import StoreError

Stamp = tuple[int, int, int] | None
Tell = Callable[[StoreError | None], None]
Held = TypeVar("Held")
_Held_co = TypeVar("_Held_co", covariant=True)


class Source(Protocol[_Held_co]):
    """Files, and how they are read."""

    def load(self) -> _Held_co:
        """What they hold. A StoreError names the file that is wrong."""

    def stamps(self) -> tuple[Stamp, ...]:
        """They change when a file does."""


class ReloadedFiles(Generic[Held]):
    """files     loaded now; a StoreError where they cannot be used
    every_ms  how often `follow` looks at them
    tell      called after each change: with None where what is new is in use; with the fault where the files cannot be
              used, and what was there before stays in use
    """

    def __init__(self, files: Source[Held], *, every_ms: int, tell: Tell) -> None:
        self._files = files
        self._every_s = every_ms / 1000
        self._tell = tell
        self._seen = files.stamps()
        self.current: Held = files.load()
        self.reload_failed = False

    def look(self) -> None:
        """Read the files if they have changed. For one thread."""
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
            return  # in the middle of a change; the next look finds its end
        self._seen = stamps
        if loaded is not None:
            self.current = loaded
        self.reload_failed = fault is not None
        self._tell(fault)

    async def follow(self) -> None:
        """Look, for ever."""
        while True:
            await asyncio.sleep(self._every_s)
            await asyncio.to_thread(self.look)


def stamps_of(paths: Iterable[Path | None]) -> tuple[Stamp, ...]:
    """Of those files that are not None."""
    return tuple(_stamp(path) for path in paths if path is not None)


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
