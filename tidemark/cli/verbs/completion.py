"""The verb `completion`: the script by which a shell completes this command."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

EXAMPLE = 'Example: eval "$(tidemark completion bash)"'
VARIABLE = "_TIDEMARK_COMPLETE"  # set by the script when it asks


class Shell(enum.StrEnum):
    """Shells that can be helped."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell you use.")]) -> None:
    """Print the script by which a shell completes verbs."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # there, and not in its __all__

    typer.echo(get_completion_script(prog_name="tidemark", complete_var=VARIABLE, shell=shell.value))
