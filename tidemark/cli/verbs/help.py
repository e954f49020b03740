"""The verb `help`: the help of a verb, as `tidemark VERB --help` prints it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

EXAMPLE = "Example: tidemark help topic create"


def show_help(
    ctx: typer.Context,
    verb: Annotated[
        list[str] | None, typer.Argument(metavar="VERB", help="A verb, such as `topic create`. Default: list all.")
    ] = None,
) -> None:
    """Print the help of a verb, or the list of all verbs."""
    shown: Any = ctx.find_root()
    for word in verb or []:
        group = shown.command
        if not hasattr(group, "commands"):
            shown.fail(f"`{shown.command_path}` has no verbs below it, such as {word!r}")
        name, command, _ = group.resolve_command(shown, [word])  # a usage error for an unknown name
        shown = command.make_context(name, [], parent=shown, resilient_parsing=True)  # without required arguments
        shown.resilient_parsing = False
    typer.echo(shown.get_help())
