"""Scanning a store's log on Spark for a verb that goes on with what was seen: the indexer's `scan`, run and watched."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.errors import UnavailableError
from tidemark.index.scan.log_range import RANGE_SIZE_BYTES, ScannedRanges, ranges_of
from tidemark.index.scan.range_files import read_progress
from tidemark.local.child_service import Service
from tidemark.settings.registry import service_module
from tidemark.store.mapped_file_queue import MappedFileQueue, size_on_disk

if TYPE_CHECKING:
    from rich.progress import Progress

    from tidemark.store.paths import StorePaths

_POLL_S = 0.2
_STOP_TIMEOUT_S = 30.0


@contextmanager
def scan_on_spark(
    paths: StorePaths, master: str, work: Path | None, progress: Progress
) -> Iterator[Callable[[int, int], ScannedRanges]]:
    """A function that scans a stretch of the log, for `check_store`; what it leaves goes when the block ends.

    master  Spark's; work: a folder that all its executors see, the system's temporary one if None
    The function raises UnavailableError when Spark fails, with the end of what it said.
    """
    with tempfile.TemporaryDirectory(prefix="tidemark-scan-", dir=work) as name:
        folder = Path(name)

        def scan(start: int, end: int) -> ScannedRanges:
            size = size_on_disk(paths.commit_log)
            if size is None or start >= end:
                return ScannedRanges(folder, ())
            log = MappedFileQueue(paths.commit_log, size)
            ranges = ranges_of(log, start, end)
            log.close()
            _run(paths, master, folder, start, end, progress)
            return ScannedRanges(folder, ranges)

        yield scan


def _run(paths: StorePaths, master: str, folder: Path, start: int, end: int, progress: Progress) -> None:
    arguments = ["--store-root", str(paths.root.absolute()), "--spark-master", master]
    arguments += ["--scan-range-size-bytes", str(RANGE_SIZE_BYTES)]  # of `ranges_of`, too
    arguments += ["--folder", str(folder), "--start", str(start), "--end", str(end)]
    service = Service("scan", [service_module("indexer"), "scan", *arguments], {}, folder / "scan.log")
    task = progress.add_task("scanning", total=end - start)
    try:
        while service.exit_status is None:
            progress.update(task, completed=read_progress(folder))
            time.sleep(_POLL_S)
        status = service.exit_status
    finally:
        service.stop(_STOP_TIMEOUT_S)
    if status != 0:
        said = "\n".join(service.last_lines())
        raise UnavailableError(f"scanning on {master} ended with exit status {status}:\n{said}")
