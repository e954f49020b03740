"""`tidemark store rebuild`: queue files and key index anew, from the log."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.failures import ExitStatus, say
from tidemark.cli.output import Output, OutputOption, print_json

if TYPE_CHECKING:
    from rich.progress import Progress

    from tidemark.cli.service import Service
    from tidemark.store.paths import StorePaths

_POLL_S = 0.2
_STOP_TIMEOUT_S = 30.0
_CLUSTER = "TIDEMARK_SPARK_MASTER"  # set by who means one; here Spark takes longer to start than to build


def rebuild(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The store's directory.", exists=True, file_okay=False)
    ],
    queues: Annotated[bool, typer.Option("--queues", help="The queue files.")] = False,
    index: Annotated[bool, typer.Option("--index", help="The key index.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Take queue files and key index away and build them again from the log; both without an option.

    The pipeline must be stopped; the writer may run. Readers see nothing until it is done. When it is stopped in
    between, the same command, or the pipeline's next start, goes on.
    """
    from tidemark.index.drop import drop_built, forget_dropped, no_pipeline, sizes_of_built
    from tidemark.store.format_file import require_known_format
    from tidemark.store.paths import StorePaths
    from tidemark.store.storage import DiskStorage

    both = not queues and not index
    paths = StorePaths(directory.absolute())
    require_known_format(paths)
    storage = DiskStorage()
    with no_pipeline(paths, storage):
        sizes = sizes_of_built(paths)
        drop_built(paths, storage, queues=queues or both, index=index or both)
    if not _build(paths, sizes):
        raise typer.Exit(ExitStatus.FAILED)
    forget_dropped(paths)
    if output is Output.JSON:
        print_json({"watermark": _watermark(paths)})
    else:
        typer.echo(f"built up to {_watermark(paths):,}")


def _build(paths: StorePaths, sizes: dict[str, int]) -> bool:
    """Run the pipeline once, as it is run by hand; whether it came through."""
    from tidemark.cli.service import Service, service_module
    from tidemark.cli.store.progress import byte_progress

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
    if status != 0:
        say(f"error: the pipeline ended with exit status {status}; the end of {service.log_path}:")
        for line in service.last_lines():
            say(f"  {line}")
    return status == 0


def _given() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("TIDEMARK_")}


def _show(service: Service, paths: StorePaths, progress: Progress) -> None:
    """Until the service ends: how far the least mark is of where the log's files end."""
    from tidemark.store.mapped_file_queue import MappedFileQueue, size_on_disk

    size = size_on_disk(paths.commit_log)
    log = MappedFileQueue(paths.commit_log, size) if size else None
    task = progress.add_task("building", total=log.capacity_end if log else None)
    while service.exit_status is None:
        progress.update(task, completed=_watermark(paths))
        time.sleep(_POLL_S)


def _watermark(paths: StorePaths) -> int:
    from tidemark.errors import CorruptStoreError
    from tidemark.store.marks import Marks

    try:
        marks = Marks.open_read_only(paths.marks)
    except (FileNotFoundError, CorruptStoreError):
        return 0
    watermark = marks.watermark()
    marks.close()
    return watermark
