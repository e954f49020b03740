"""How a verb ends: its exit status, and what is said about an error instead of a traceback."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

import typer
from rich.console import Console

from tidemark.errors import StoreError


class ExitStatus(enum.IntEnum):
    """Exit status of every verb."""

    DONE = 0  # and nothing was found
    FINDINGS = 1
    NOT_DONE = 2  # wrong usage (click's own number), or an error that says why


@contextlib.contextmanager
def errors_told() -> Iterator[None]:
    """What a verb does stands in here: a StoreError or OSError is told on standard error and ends it with NOT_DONE."""
    errors = Console(stderr=True)
    try:
        yield
    except StoreError as error:
        errors.print(error.message, style="bold red", markup=False, highlight=False, soft_wrap=True)
        for name, fact in error.facts.items():
            errors.print(f"  {name}: {fact}", style="dim", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(ExitStatus.NOT_DONE) from error
    except OSError as error:
        errors.print(str(error), style="bold red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(ExitStatus.NOT_DONE) from error
