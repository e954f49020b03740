"""Confirmation before an irreversible change."""

from __future__ import annotations

import typer

from tidemark.cli.terminal.exit_status import ExitStatus, say


def confirm(question: str, *, yes: bool) -> None:
    """Ask on standard error, unless *yes*. End the command with FAILED for any answer but yes, or for none."""
    if yes:
        return
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        agreed = False
        say("")
    if not agreed:
        say("nothing was changed; use --yes to skip the question")
        raise typer.Exit(ExitStatus.FAILED)
