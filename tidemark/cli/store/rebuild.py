"""`tidemark store rebuild`: builds queue files and key index again from the log."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli.store.rebuild_report import report
from tidemark.cli.terminal.exit_status import ExitStatus, say
from tidemark.cli.terminal.output import Output, OutputOption, print_json

if TYPE_CHECKING:
    from rich.progress import Progress

    from tidemark.local.child_service import Service
    from tidemark.store.paths import StorePaths

_POLL_S = 0.2
_STOP_TIMEOUT_S = 30.0
_MASTER = "TIDEMARK_SPARK_MASTER"
_TELLING = {"TIDEMARK_LOG_LEVEL": "info"}  # `report` reads the outcome from the pipeline's log


def rebuild(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The store's directory.", exists=True, file_okay=False)
    ],
    queues: Annotated[bool, typer.Option("--queues", help="Rebuild the queue files. Default: both.")] = False,
    index: Annotated[bool, typer.Option("--index", help="Rebuild the key index. Default: both.")] = False,
    master: Annotated[
        str,
        typer.Option(
            envvar=_MASTER,
            metavar="URL",
            help="Spark master that runs the tasks. Default: processes on this machine.",
        ),
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Remove queue files and key index, and build them again from the log; without an option, both.

    The pipeline must be stopped; the writer may run. Readers see no messages until it is finished. After an
    interruption, the same command or a start of the pipeline continues.
    """
    from tidemark.index.drop import drop_built, forget_dropped, no_pipeline, sizes_of_built
    from tidemark.store.originals.format_file import require_known_format
    from tidemark.store.paths import StorePaths
    from tidemark.store.storage import DiskStorage

    both = not queues and not index
    paths = StorePaths(directory.absolute())
    require_known_format(paths)
    storage = DiskStorage()
    with no_pipeline(paths, storage):
        sizes = sizes_of_built(paths)
        drop_built(paths, storage, queues=queues or both, index=index or both)
    facts = build_once(paths, sizes, master)
    if facts is None:
        raise typer.Exit(ExitStatus.FAILED)
    forget_dropped(paths)
    if output is Output.JSON:
        print_json(facts)
    else:
        rate = f"{facts['bytes_per_s'] / 1e6:,.0f} MB/s"
        typer.echo(f"built up to {facts['watermark']:,}: {facts['records']:,} records, {facts['keys']:,} keys, {rate}")


def build_once(paths: StorePaths, sizes: dict[str, int], master: str) -> dict[str, Any] | None:
    """Run the pipeline once, and return the facts of its report; None if it failed."""
    from tidemark.cli.terminal.progress import byte_progress
    from tidemark.local.child_service import Service
    from tidemark.settings.registry import service_module

    settings = {f"TIDEMARK_{name.upper()}": str(size) for name, size in sizes.items()}
    logs = paths.root / "logs"
    logs.mkdir(exist_ok=True)
    service = Service(
        "rebuild",
        [service_module("indexer"), "pipeline", "--once", *([] if master else ["--pipeline", "plain"])],
        {**settings, **_given(), "TIDEMARK_STORE_ROOT": str(paths.root), _MASTER: master, **_TELLING},
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
        return None
    return report(service.log_path.read_text(errors="replace").splitlines())


def _given() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("TIDEMARK_")}


def _show(service: Service, paths: StorePaths, progress: Progress) -> None:
    """Show progress until the service ends: the scanned bytes, and the watermark, out of the log's capacity."""
    from tidemark.index.scan.range_files import read_progress
    from tidemark.store.mapped_file_queue import MappedFileQueue, size_on_disk

    size = size_on_disk(paths.commit_log)
    log = MappedFileQueue(paths.commit_log, size) if size else None
    scanning = progress.add_task("scanning", total=log.capacity_end - log.min_offset if log else None, visible=False)
    building = progress.add_task("building", total=log.capacity_end if log else None)
    while service.exit_status is None:
        scanned = read_progress(paths.indexer / "scan")
        progress.update(scanning, completed=scanned, visible=scanned > 0)
        progress.update(building, completed=_watermark(paths))
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
