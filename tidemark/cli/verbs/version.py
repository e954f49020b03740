"""The verb `version`."""

from __future__ import annotations

import platform

import typer

from tidemark.cli.terminal.output import Output, OutputOption, print_json
from tidemark.version import program_version

EXAMPLE = "Example: tidemark version --output json"


def version(output: OutputOption = Output.TABLE) -> None:
    """Print the version. With --output json, also print that of Python."""
    if output is Output.JSON:
        print_json({"version": program_version(), "python": platform.python_version()})
    else:
        typer.echo(program_version())
