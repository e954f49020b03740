"""PagesAhead: has the kernel make pages for the log's next bytes, where making them is what takes the time.

A write to a new part of a file needs new pages. On many virtual machines a page that the guest has not touched for
long is the host's to give back first, ten times as long as it takes to fill; whoever appends would wait for each.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

from tidemark.store.mapped_file_queue import MappedFileQueue

AHEAD_BYTES = 16 << 20  # of pages without a byte in them
LEAST_BYTES = 64 << 10  # of a write that tells what pages cost; the call is most of a smaller one
_STEP_BYTES = 1 << 20  # of one call: the kernel may cut off more
_DEAR_S_A_BYTE = 0.75e-9  # of processor time; where memory is at hand, half of it or less


class PagesAhead:
    """A thread that comes with the first dear write, and rests while pages are cheap."""

    def __init__(self, log: MappedFileQueue) -> None:
        self._log = log
        self._thread = ThreadPoolExecutor(1, "pages-ahead")
        self._making: Future[None] | None = None
        self._made = 0  # up to where there are pages
        self._are_dear = False  # as making them showed
        self._closing = False

    def wrote(self, end: int, size: int, cpu_s: float) -> None:
        """*size* bytes up to *end* of the log were written, in *cpu_s* seconds of the caller's processor time."""
        if size < LEAST_BYTES or not (self._are_dear or _is_dear(size, cpu_s)) or self._made - end > AHEAD_BYTES // 2:
            return
        if self._making is None or self._making.done():
            self._making = self._thread.submit(self._make, max(self._made, end), end + AHEAD_BYTES)

    def close(self) -> None:
        """End, and leave pages unmade. Nothing may be written any more."""
        self._closing = True
        self._thread.shutdown()

    def _make(self, at: int, until: int) -> None:
        began, first = time.thread_time(), at
        while at < until and not self._closing:
            self._log.read_ahead(at, _STEP_BYTES)
            at = self._made = at + _STEP_BYTES
        self._are_dear = _is_dear(at - first, time.thread_time() - began)


def _is_dear(size: int, cpu_s: float) -> bool:
    return cpu_s > size * _DEAR_S_A_BYTE
