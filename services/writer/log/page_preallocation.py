"""PagePreallocation: prefetches page-cache pages past the log's end when allocating them dominates the cost of a write.

A write to a new part of a file needs new pages. On many virtual machines the host must first provide a page that the
guest has not used for long. That takes ten times as long as filling the page, and appends would wait for each one.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

from tidemark.store.mapped_file_queue import MappedFileQueue

AHEAD_BYTES = 16 << 20  # pages prefetched past the log's end
LEAST_BYTES = 64 << 10  # smallest write whose time shows the cost of pages; in smaller ones the call itself dominates
_STEP_BYTES = 1 << 20  # per call: the kernel may truncate larger requests
_DEAR_S_A_BYTE = 0.75e-9  # processor time above which pages count as expensive; with free memory it is at most half


class PagePreallocation:
    """The prefetching thread, which starts at the first expensive write and is idle while pages are cheap."""

    def __init__(self, log: MappedFileQueue) -> None:
        self._log = log
        self._thread = ThreadPoolExecutor(1, "pages-ahead")
        self._making: Future[None] | None = None
        self._made = 0  # end of the prefetched pages
        self._are_dear = False  # whether the last prefetch was expensive
        self._closing = False

    def wrote(self, end: int, size: int, cpu_s: float) -> None:
        """Note a write of *size* bytes up to *end* that took *cpu_s* of processor time, and prefetch if needed."""
        if size < LEAST_BYTES or not (self._are_dear or _is_dear(size, cpu_s)) or self._made - end > AHEAD_BYTES // 2:
            return
        if self._making is None or self._making.done():
            self._making = self._thread.submit(self._make, max(self._made, end), end + AHEAD_BYTES)

    def close(self) -> None:
        """Stop the thread. No write may follow."""
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
