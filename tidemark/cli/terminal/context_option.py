"""The option --context, which the root command and all verbs that connect to a service have."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from tidemark.cli.terminal.contexts import VARIABLES, applied_context, complete_context

_CHOSEN, _APPLIED = "tidemark.context", "tidemark.context.applied"  # keys in the command's context
_HELP = "Connect as in this context of `tidemark context list`. Default: TIDEMARK_CONTEXT, then the current one."


def _remember(ctx: typer.Context, name: str | None) -> str | None:
    ctx.meta[_CHOSEN] = name
    return name


def _apply(ctx: typer.Context, name: str | None) -> str | None:
    """Set the variables before the options that read them are processed, until the verb's end."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its lines on standard error repeat the errors of verbs
    ctx.meta[_CHOSEN] = name or ctx.meta.get(_CHOSEN)
    ctx.meta[_APPLIED] = ctx.with_resource(applied_context(ctx.meta[_CHOSEN]))
    return name


RootContextOption = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="NAME", help=_HELP, callback=_remember, is_eager=True, autocompletion=complete_context
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help=_HELP,
        callback=_apply,
        is_eager=True,
        expose_value=False,
        autocompletion=complete_context,
    ),
]


def chosen_context(ctx: typer.Context) -> str | None:
    """Return the name that was given to the verb, or else to the root command."""
    name: str | None = ctx.meta.get(_CHOSEN)
    return name


def source_of(ctx: typer.Context, key: str) -> str:
    """Return the source of the value for a *key* of a context: option, environment, `context NAME` or default."""
    given = ctx.get_parameter_source(key)
    if given is not None and given.name == "COMMANDLINE":
        return "option"
    variable = VARIABLES[key]
    if context := ctx.meta.get(_APPLIED, {}).get(variable):
        return f"context {context}"
    return "environment" if os.environ.get(variable) else "default"
