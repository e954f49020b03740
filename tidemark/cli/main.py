"""The `tidemark` command: its verbs by name, one module per verb or group of verbs.

A verb's module is imported when the verb is used, or when all verbs are listed. `tidemark --help` must start fast, so
these modules import only what the command line needs at their top, and everything else inside their functions.
"""

from __future__ import annotations

import importlib
import os
from collections import UserDict
from typing import Annotated, Any

import typer
from typer.main import get_command

from tidemark.cli.terminal.context_option import ContextOption, RootContextOption
from tidemark.cli.terminal.contexts import VARIABLES
from tidemark.cli.terminal.exit_status import FailuresTold
from tidemark.cli.verbs.completion import VARIABLE

HELP = """Tidemark: an append-only event log in RocketMQ's file format.

Client verbs connect to the services at --writer and --query, otherwise at TIDEMARK_WRITER_ADDRESS and
TIDEMARK_QUERY_URL, otherwise at those of a context (`tidemark context add`). For TLS, set TIDEMARK_TLS_CA to the
trusted CAs, TIDEMARK_TLS_CERT and TIDEMARK_TLS_KEY to the client's certificate and key, and TIDEMARK_TOKEN_FILE to the
file of the client's token, or add them to a context.
`tidemark help VERB` shows an example of each verb."""

_VERBS = {  # name → module:function or module:app, in the order of --help
    "serve": "verbs.serve:serve",
    "follow": "verbs.follow:follow",
    "status": "verbs.status:status",
    "doctor": "verbs.doctor:doctor",
    "topic": "verbs.topic:app",
    "produce": "verbs.produce:produce",
    "consume": "verbs.consume:consume",
    "get": "verbs.get:app",
    "group": "verbs.group:app",
    "dlq": "verbs.dlq:app",
    "bench": "verbs.bench:bench",
    "store": "store.app:app",
    "archive": "archive.app:app",
    "log": "verbs.log:app",
    "config": "verbs.config:app",
    "context": "verbs.context:app",
    "access": "verbs.access:app",
    "completion": "verbs.completion:completion",
    "version": "verbs.version:version",
    "help": "verbs.help:show_help",
}
_ADDRESSES = (VARIABLES["writer"], VARIABLES["query"])  # options that read these are those of services


class _Commands(UserDict[str, Any]):
    """Commands by name. A value is the place of a verb until it is used for the first time."""

    def __getitem__(self, name: str) -> Any:
        command = super().__getitem__(name)
        if isinstance(command, str):
            command = self.data[name] = _load(name, command)
        return command


class _Root(FailuresTold):
    """The root command, whose verbs are imported when they are used."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands(_VERBS)


def _load(name: str, place: str) -> Any:
    """Import the verb, or the group of verbs, at *place*, and return its command."""
    module_name, _, attribute = place.partition(":")
    module = importlib.import_module(f"tidemark.cli.{module_name}")
    verb = getattr(module, attribute)
    parent = typer.Typer(rich_markup_mode=None, add_completion=False)
    parent.command("with-context")(_with_context)
    if isinstance(verb, typer.Typer):
        parent.add_typer(verb, name=name)
    else:
        parent.command(name, epilog=module.EXAMPLE)(verb)
    loaded: Any = get_command(parent)
    command = loaded.commands[name]
    _add_context_option(command, loaded.commands["with-context"].params[0])
    return command


def _with_context(_context: ContextOption = None) -> None:
    """Have the option that verbs get."""


def _add_context_option(command: Any, option: Any) -> None:
    """Add --context to the verbs at and below *command* that connect to a service."""
    for child in getattr(command, "commands", {}).values():
        _add_context_option(child, option)
    if any(parameter.envvar in _ADDRESSES for parameter in command.params):
        command.params.append(option)


app = typer.Typer(
    cls=_Root,
    no_args_is_help=True,
    add_completion=False,  # the verb `completion` prints the script
    rich_markup_mode=None,  # importing rich would double the time of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
if VARIABLE in os.environ:  # the shell asks for completions
    from typer.completion import completion_init  # type: ignore[attr-defined]  # there, and not in its __all__

    completion_init()


def _print_version(wanted: bool) -> None:
    if wanted:
        from tidemark.version import program_version

        typer.echo(program_version())
        raise typer.Exit


@app.callback(help=HELP)
def _root(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    _context: RootContextOption = None,
) -> None:
    pass


if __name__ == "__main__":
    app()
