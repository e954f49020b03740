"""`tidemark store check`: compares the files of a store with each other. Reads only."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.cli.terminal.output import JsonFlag, Output, OutputOption, print_json
from tidemark.errors import ArgumentIllegalError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tidemark.index.check.findings import Finding, Scope
    from tidemark.index.check.store import CheckReport
    from tidemark.index.check.verdicts import QueueVerdict

_SHOWN = 50


def check(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The store's directory.", exists=True, file_okay=False)
    ],
    start: Annotated[
        int | None, typer.Option("--from", min=0, metavar="PHYS", help="Start offset. Default: the log's.")
    ] = None,
    end: Annotated[
        int | None, typer.Option("--to", min=0, metavar="PHYS", help="End offset, exclusive. Default: the log's.")
    ] = None,
    index: Annotated[bool, typer.Option(help="Also check the key index.")] = True,
    index_slots: Annotated[
        int | None,
        typer.Option(min=1, help="Number of slots of an index file. Default: a quarter of its number of entries."),
    ] = None,
    queues: Annotated[bool, typer.Option("--queues", help="Print a verdict for each queue.")] = False,
    output: OutputOption = Output.TABLE,
    as_json: JsonFlag = False,
) -> None:
    """Check a store: log, queues, key index and small files against each other.

    It takes no lock and writes nothing, so it can run while the services or a broker run; it then checks the log up to
    the committed offset. Exit status 1 if there are findings.
    """
    from tidemark.cli.terminal.progress import byte_progress
    from tidemark.index.check.scope import whole_store
    from tidemark.index.check.store import check_store
    from tidemark.store.originals.format_file import require_known_format
    from tidemark.store.paths import StorePaths

    as_json |= output is Output.JSON
    paths = StorePaths(directory)
    require_known_format(paths)
    if not paths.commit_log.is_dir():
        raise ArgumentIllegalError(f"{directory} is not a store: it has no commitlog folder", argument="directory")
    scope = _within(whole_store(paths), start, end)
    with byte_progress(quiet=as_json or not sys.stderr.isatty()) as progress:
        task = progress.add_task("checking", total=None)
        report = check_store(
            paths,
            scope,
            with_index=index,
            index_slots=index_slots,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if as_json:
        print_json(report.as_json() if queues else {**report.as_json(), "queues": len(report.queues)})
    else:
        _print_text(report, with_queues=queues)
    raise typer.Exit(ExitStatus.FAILED if report.findings else ExitStatus.OK)


def _print_text(report: CheckReport, *, with_queues: bool) -> None:
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False)
    if with_queues:
        console.print(_table(report.queues))
    _show(console, report.findings, "red")
    _show(console, report.notes, "yellow")
    outcome = f"{len(report.findings)} findings" if report.findings else "sound"
    console.print(f"{report.records:,} records from {report.start} to {report.end}: [bold]{outcome}[/]")


def _table(queues: list[QueueVerdict]) -> Table:
    from rich.table import Table

    table = Table("topic", "queue", "type", "first", "next", "records", "verdict", box=None)
    for queue in queues:
        first = "-" if queue.first is None else f"{queue.first:,}"
        what = {"wrong": f"wrong: {queue.findings} findings", "lags": f"lags by {queue.lagging:,} units"}
        verdict = what.get(queue.verdict, queue.verdict)
        kind = queue.kind or "?"
        table.add_row(queue.topic, str(queue.queue_id), kind, first, f"{queue.next:,}", f"{queue.records:,}", verdict)
    return table


def _within(scope: Scope, start: int | None, end: int | None) -> Scope:
    """Return the part of *scope* from *start* to *end*."""
    if start is None and end is None:
        return scope
    ends = [known for known in (end, scope.end) if known is not None]
    part = dataclasses.replace(
        scope, start=max(scope.start, start or 0), end=min(ends) if ends else None, is_range=True
    )
    if part.end is not None and part.end <= part.start:
        raise ArgumentIllegalError(f"there are no bytes to check from {part.start} to {part.end}", argument="--to")
    return part


def _show(console: Console, found: list[Finding], style: str) -> None:
    for finding in found[:_SHOWN]:
        console.print(f"[{style}]{finding.reason}[/]", end=" ")
        console.print(_line(finding), markup=False)
    if len(found) > _SHOWN:
        console.print(f"… and {len(found) - _SHOWN} more; --output json shows all", style="dim")


def _line(finding: Finding) -> str:
    """Return the location and text of *finding*."""
    where = [finding.path] if finding.path is not None else []
    if finding.topic is not None:
        where.append(f"{finding.topic}/{finding.queue_id}" if finding.queue_id is not None else finding.topic)
    if finding.physical_offset is not None:
        where.append(f"at {finding.physical_offset}")
    return f"{' '.join(where)}: {finding.text}" if where else finding.text
