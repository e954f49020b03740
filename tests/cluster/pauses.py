"""Pauses: how long committed bytes wait until they are visible, read from the store's mapped files."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from tidemark.store.checkpoint import Checkpoint
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths

_LOOK_S = 0.01


class Pauses:
    """A thread that looks every 10 ms. longest_s: the longest time from committed to visible since `begin`."""

    def __init__(self, store: Path) -> None:
        paths = StorePaths(store)
        self._marks = Marks.open_read_only(paths.marks)
        self._checkpoint = Checkpoint.open_read_only(paths.checkpoint)
        self._ending = threading.Event()
        self.longest_s = 0.0
        self._thread = threading.Thread(target=self._run, name="pauses")
        self._thread.start()

    def begin(self) -> None:
        """Forget earlier pauses."""
        self.longest_s = 0.0

    def stop(self) -> None:
        """Stop."""
        self._ending.set()
        self._thread.join()
        self._marks.close()
        self._checkpoint.close()

    def _run(self) -> None:
        target, since = 0, time.monotonic()
        while not self._ending.wait(_LOOK_S):
            now = time.monotonic()
            if target:
                self.longest_s = max(self.longest_s, now - since)
            if self._marks.watermark() >= target:
                target, since = self._checkpoint.committed_offset, now
