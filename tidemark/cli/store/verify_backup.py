"""`tidemark store verify-backup`: whether a backup is what it was, and its log whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from tidemark.cli.store.outcome import ExitStatus, errors_told
from tidemark.cli.store.progress import byte_progress


def verify_backup(
    backup: Annotated[Path, typer.Argument(help="The backup's folder.", exists=True, file_okay=False)],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Compare every file of a backup with its hash, and check every record of its log.

    Exit status: 0 sound, 1 something is wrong, 2 there is no finished backup.
    """
    from tidemark.backup.verify import verify_backup as verify

    with errors_told(), byte_progress(quiet=as_json or not sys.stderr.isatty()) as progress:
        task = progress.add_task("verifying", total=None)
        verified = verify(backup, on_progress=lambda done, total: progress.update(task, completed=done, total=total))
    manifest, flaws = verified.manifest, verified.flaws
    if as_json:
        content = {
            **{name: getattr(manifest, name) for name in ("store_name", "term", "start", "end", "taken_ms")},
            "records": verified.records,
            "flaws": [flaw._asdict() for flaw in flaws],
        }
        sys.stdout.buffer.write(orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for flaw in flaws:
            place = "" if flaw.physical_offset is None else f" at {flaw.physical_offset}"
            console.print(f"[red]{flaw.reason}[/] {flaw.path}{place}: {flaw.text}")
        outcome = f"{len(flaws)} flaws" if flaws else "sound"
        console.print(f"{verified.records:,} records from {manifest.start} to {manifest.end}: [bold]{outcome}[/]")
    raise typer.Exit(ExitStatus.FINDINGS if flaws else ExitStatus.DONE)
