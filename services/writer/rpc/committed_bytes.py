"""LogReader: reads committed bytes of the log in slices. It has its own view of the files and its own thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tidemark.store.mapped_file_queue import MappedFileQueue

MAX_SLICE_SIZE = 1 << 20


class LogReader:
    """A reader whose thread owns a read-only view of the files and refreshes it after the log has grown."""

    def __init__(self, open_log: Callable[[], MappedFileQueue]) -> None:
        self._log = open_log()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log-reader")

    async def read(self, physical_offset: int, end: int) -> bytes:
        """Return bytes from *physical_offset*, at most to *end*, the file's end or MAX_SLICE_SIZE bytes.

        The result is empty only if the log does not have them.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, physical_offset, end)

    def _read(self, physical_offset: int, end: int) -> bytes:
        if not self._log.covers(physical_offset):
            self._log.refresh()
        return self._log.read(physical_offset, min(MAX_SLICE_SIZE, end - physical_offset))

    def close_deleted(self) -> None:
        """Close deleted files, so that the disk space is freed."""
        with contextlib.suppress(RuntimeError):  # the reader is closed
            self._thread.submit(self._log.refresh)

    def close(self) -> None:
        """Stop the thread and close the files."""
        self._thread.shutdown(wait=True)
        self._log.close()
