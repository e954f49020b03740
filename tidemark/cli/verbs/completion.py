"""The verb `completion`: prints the completion script for a shell."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

EXAMPLE = 'Example: eval "$(tidemark completion bash)"'
VARIABLE = "_TIDEMARK_COMPLETE"  # set by the script when it asks for completions


class Shell(enum.StrEnum):
    """Supported shells."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="Your shell.")]) -> None:
    """Print a script that makes a shell complete verbs, options, topics, groups and contexts.

    Topics and groups are those of the query service that the typed line would ask.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # defined, but not in its __all__

    typer.echo(get_completion_script(prog_name="tidemark", complete_var=VARIABLE, shell=shell.value))
