"""`tidemark store verify-backup`: checks a backup's files and log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.cli.terminal.output import JsonFlag, Output, OutputOption, print_json

if TYPE_CHECKING:
    from tidemark.backup.verify import BackupVerification


def verify_backup(
    backup: Annotated[
        Path, typer.Argument(metavar="BACKUP", help="The backup's folder.", exists=True, file_okay=False)
    ],
    output: OutputOption = Output.TABLE,
    as_json: JsonFlag = False,
) -> None:
    """Compare every file of a backup with its hash, and check every record of its log.

    Exit status 1 if there are flaws.
    """
    from tidemark.backup.verify import verify_backup as verify
    from tidemark.cli.terminal.progress import byte_progress

    as_json |= output is Output.JSON
    with byte_progress(quiet=as_json or not sys.stderr.isatty()) as progress:
        task = progress.add_task("verifying", total=None)
        verified = verify(backup, on_progress=lambda done, total: progress.update(task, completed=done, total=total))
    if as_json:
        _print_json(verified)
    else:
        _print_text(verified)
    raise typer.Exit(ExitStatus.FAILED if verified.flaws else ExitStatus.OK)


def _print_json(verified: BackupVerification) -> None:
    names = ("store_name", "term", "start", "end", "taken_ms")
    print_json(
        {
            **{name: getattr(verified.manifest, name) for name in names},
            "records": verified.records,
            "flaws": [flaw._asdict() for flaw in verified.flaws],
        }
    )


def _print_text(verified: BackupVerification) -> None:
    from rich.console import Console

    manifest, flaws = verified.manifest, verified.flaws
    console = Console(highlight=False, soft_wrap=True)
    for flaw in flaws:
        place = "" if flaw.physical_offset is None else f" at {flaw.physical_offset}"
        console.print(f"[red]{flaw.reason}[/] {flaw.path}{place}: {flaw.text}")
    outcome = f"{len(flaws)} flaws" if flaws else "sound"
    console.print(f"{verified.records:,} records from {manifest.start} to {manifest.end}: [bold]{outcome}[/]")
