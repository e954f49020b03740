"""`tidemark context …`: named addresses and credentials, so that verbs need no options or variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated

import typer

from tidemark.cli.terminal.contexts import (
    PATHS,
    complete_context,
    contexts_path,
    read_contexts,
    require_name,
    require_value,
    write_contexts,
)
from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.output import Output, OutputOption, print_facts, print_json, print_table

app = typer.Typer(no_args_is_help=True, help="Name addresses and credentials, and choose among them.")
_NewName = Annotated[str, typer.Argument(metavar="NAME", help="The context's name.")]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The context's name.", autocompletion=complete_context)]


@app.callback()
def _context() -> None:
    """Name addresses and credentials, and choose among them."""


@app.command("list", epilog="Example: tidemark context list")
def list_contexts(output: OutputOption = Output.TABLE) -> None:
    """List all contexts; an asterisk marks the current one."""
    contexts = read_contexts()
    if output is Output.JSON:
        print_json({"file": str(contexts_path()), "current": contexts.current, "contexts": contexts.by_name})
        return
    rows = [
        ("*" if name == contexts.current else "", name, values.get("writer"), values.get("query"))
        for name, values in contexts.by_name.items()
    ]
    print_table(("", "context", "writer", "query"), rows)


@app.command(epilog="Example: tidemark context show prod")
def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="The context's name. Default: the current one.", autocompletion=complete_context
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the values of a context."""
    contexts = read_contexts()
    chosen = name or contexts.current
    if chosen is None:
        raise typer.BadParameter("there is no current context: give a name", param_hint="NAME")
    values = contexts.get(chosen, option="NAME")
    if output is Output.JSON:
        print_json({"context": chosen, "current": chosen == contexts.current, **values})
    else:
        print_facts({"context": chosen, "current": "yes" if chosen == contexts.current else "no", **values})


@app.command(epilog="Example: tidemark context add prod --query https://tidemark.example.com --token-file prod.token")
def add(
    name: _NewName,
    writer: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Address of the writer.")] = None,
    query: Annotated[str | None, typer.Option(metavar="URL", help="URL of the query service.")] = None,
    tls_ca: Annotated[str | None, typer.Option(metavar="FILE", help="CAs to trust, PEM.")] = None,
    tls_cert: Annotated[str | None, typer.Option(metavar="FILE", help="The client's certificate, PEM.")] = None,
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="The client's private key, PEM.")] = None,
    token_file: Annotated[str | None, typer.Option(metavar="FILE", help="File of the client's token.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a context of this name.")] = False,
    use: Annotated[bool, typer.Option("--use", help="Make it the current context.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Add a context. Values that it does not have are those of the environment, or the defaults.

    The contexts are in $XDG_CONFIG_HOME/tidemark/contexts.toml (by default ~/.config/tidemark/contexts.toml), which
    this verb writes anew. An option of a verb precedes a variable such as TIDEMARK_QUERY_URL, and the variable precedes
    the context.
    """
    require_name(name, option="NAME")
    given = {
        "writer": writer,
        "query": query,
        "tls_ca": tls_ca,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "token_file": token_file,
    }
    values = {key: _checked(key, value) for key, value in given.items() if value is not None}
    if not values:
        raise typer.BadParameter("give at least one of --writer, --query, the TLS files and --token-file")
    if ("tls_cert" in values) != ("tls_key" in values):
        raise typer.BadParameter("--tls-cert and --tls-key must be given together")
    contexts = read_contexts()
    if name in contexts.by_name and not replace:
        raise typer.BadParameter(f"{name} exists: give --replace, or another name", param_hint="NAME")
    contexts.by_name[name] = values
    contexts.current = name if use else contexts.current
    write_contexts(contexts)
    _report({"context": name, "current": name == contexts.current, **values}, output, f"{name} is stored")


@app.command(epilog="Example: tidemark context use prod")
def use(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The context's name.", autocompletion=complete_context)
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Use no context unless --context names one.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a context the current one, which verbs use without --context."""
    if (name is None) != none:
        raise typer.BadParameter("give either a name or --none", param_hint="NAME")
    contexts = read_contexts()
    if name is not None:
        contexts.get(name, option="NAME")
    contexts.current = name
    write_contexts(contexts)
    _report({"current": name}, output, "no context is current" if name is None else f"{name} is the current context")


@app.command(epilog="Example: tidemark context remove prod")
def remove(name: _Name, output: OutputOption = Output.TABLE) -> None:
    """Remove a context. If it is the current one, there is none after that."""
    contexts = read_contexts()
    contexts.get(name, option="NAME")
    del contexts.by_name[name]
    contexts.current = None if contexts.current == name else contexts.current
    write_contexts(contexts)
    _report({"context": name, "removed": True}, output, f"{name} is removed")


def _checked(key: str, value: str) -> str:
    """Return the value to store: a path is absolute. Raises a usage error, or ArgumentIllegalError for an address."""
    option = f"--{key.replace('_', '-')}"
    require_value(value, option=option)
    if key in PATHS:
        return os.path.abspath(os.path.expanduser(value))
    if key == "writer":
        from tidemark.client.errors.address_faults import require_store_address

        for address in value.split(","):
            require_store_address(address, option)
    elif not value.startswith(("http://", "https://")):
        raise typer.BadParameter(
            f"{value!r} is no http or https address, such as http://127.0.0.1:8080", param_hint=option
        )
    return value


def _report(document: Mapping[str, object], output: Output, text: str) -> None:
    if output is Output.JSON:
        print_json(document)
    else:
        say(text)
