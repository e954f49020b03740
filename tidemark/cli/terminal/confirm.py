"""Asking before something is changed that cannot be changed back."""

from __future__ import annotations

import typer

from tidemark.cli.terminal.exit_status import ExitStatus, say


def confirm(question: str, *, yes: bool) -> None:
    """Ask on standard error, unless *yes*; end the command with FAILED when the answer is no, or nobody is there."""
    if yes:
        return
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        agreed = False
        say("")
    if not agreed:
        say("nothing was changed; --yes answers without asking")
        raise typer.Exit(ExitStatus.FAILED)
