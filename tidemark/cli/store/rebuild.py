"""`tidemark store rebuild`: queue files and key index anew, from the log."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from tidemark.cli.service import Service, service_module
from tidemark.cli.store.outcome import ExitStatus, errors_told
from tidemark.cli.store.progress import byte_progress
from tidemark.errors import CorruptStoreError
from tidemark.index.drop import drop_built, forget_dropped, no_pipeline, sizes_of_built
from tidemark.store.format_file import require_known_format
from tidemark.store.mapped_file_queue import MappedFileQueue, size_on_disk
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

_POLL_S = 0.2
_STOP_TIMEOUT_S = 30.0
_CLUSTER = "TIDEMARK_SPARK_MASTER"  # set by who means one; here Spark takes longer to start than to build


def rebuild(
    directory: Annotated[Path, typer.Argument(help="The store's directory.", exists=True, file_okay=False)],
    queues: Annotated[bool, typer.Option("--queues", help="The queue files.")] = False,
    index: Annotated[bool, typer.Option("--index", help="The key index.")] = False,
) -> None:
    """Take queue files and key index away and build them again from the log; both without an option.

    The pipeline must be stopped; the writer may run. Readers see nothing until it is done. When it is stopped in
    between, the same command, or the pipeline's next start, goes on.

    Exit status: 0 rebuilt, 2 not.
    """
    both = not queues and not index
    with errors_told():
        paths = StorePaths(directory.absolute())
        require_known_format(paths)
        storage = DiskStorage()
        with no_pipeline(paths, storage):
            sizes = sizes_of_built(paths)
            drop_built(paths, storage, queues=queues or both, index=index or both)
        done = _build(paths, sizes)
        if done:
            forget_dropped(paths)
    raise typer.Exit(ExitStatus.DONE if done else ExitStatus.NOT_DONE)


def _build(paths: StorePaths, sizes: dict[str, int]) -> bool:
    """Run the pipeline once, as it is run by hand; whether it came through."""
    settings = {f"TIDEMARK_{name.upper()}": str(size) for name, size in sizes.items()}
    logs = paths.root / "logs"
    logs.mkdir(exist_ok=True)
    service = Service(
        "rebuild",
        [service_module("indexer"), "pipeline", "--once", *([] if _CLUSTER in os.environ else ["--no-spark"])],
        {**settings, **_given(), "TIDEMARK_STORE_ROOT": str(paths.root)},
        logs / "rebuild.log",
    )
    try:
        with byte_progress(quiet=not sys.stderr.isatty()) as progress:
            _show(service, paths, progress)
        status = service.exit_status
    finally:
        service.stop(_STOP_TIMEOUT_S)
    console = Console(stderr=status != 0, highlight=False, soft_wrap=True)
    if status != 0:
        console.print(f"the pipeline ended with exit status {status}; the end of {service.log_path}:", style="bold red")
        for line in service.last_lines():
            console.print(f"  {line}", markup=False)
        return False
    console.print(f"built up to {_watermark(paths):,}")
    return True


def _given() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("TIDEMARK_")}


def _show(service: Service, paths: StorePaths, progress: Progress) -> None:
    """Until the service ends: how far the least mark is of where the log's files end."""
    size = size_on_disk(paths.commit_log)
    log = MappedFileQueue(paths.commit_log, size) if size else None
    task = progress.add_task("building", total=log.capacity_end if log else None)
    while service.exit_status is None:
        progress.update(task, completed=_watermark(paths))
        time.sleep(_POLL_S)


def _watermark(paths: StorePaths) -> int:
    try:
        marks = Marks.open_read_only(paths.marks)
    except (FileNotFoundError, CorruptStoreError):
        return 0
    watermark = marks.watermark()
    marks.close()
    return watermark
