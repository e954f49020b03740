"""The `tidemark` command: its verbs by name, one module per verb or group of verbs.

`tidemark --help` must start fast: the modules of verbs import only what the command line needs at their top, and
everything else inside their functions.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]  # there, and not in its __all__

from tidemark.cli.archive.app import app as archive_app
from tidemark.cli.store.app import app as store_app
from tidemark.cli.terminal.exit_status import FailuresTold
from tidemark.cli.verbs import completion, consume, doctor, produce, status
from tidemark.cli.verbs import serve as serve_verb
from tidemark.cli.verbs.access import app as access_app
from tidemark.cli.verbs.config import app as config_app
from tidemark.cli.verbs.dlq import app as dlq_app
from tidemark.cli.verbs.get import app as get_app
from tidemark.cli.verbs.group import app as group_app
from tidemark.cli.verbs.log import app as log_app
from tidemark.cli.verbs.topic import app as topic_app

HELP = """Tidemark: an append-only event log in RocketMQ's file format.

Client verbs connect to the services at TIDEMARK_WRITER_ADDRESS and TIDEMARK_QUERY_URL, or at --writer and --query. For
TLS, set TIDEMARK_TLS_CA to the trusted CAs, TIDEMARK_TLS_CERT and TIDEMARK_TLS_KEY to the client's certificate and key,
and TIDEMARK_TOKEN_FILE to the file of the client's token.
`tidemark VERB --help` shows an example of each verb."""

app = typer.Typer(
    cls=FailuresTold,
    no_args_is_help=True,
    add_completion=False,  # the verb `completion` prints the script
    rich_markup_mode=None,  # importing rich would double the time of --help
    pretty_exceptions_enable=False,
)
if completion.VARIABLE in os.environ:  # the shell asks for completions
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
) -> None:
    pass


app.command(epilog=serve_verb.EXAMPLE)(serve_verb.serve)
app.command(epilog=status.EXAMPLE)(status.status)
app.command(epilog=doctor.EXAMPLE)(doctor.doctor)
app.add_typer(topic_app, name="topic")
app.command(epilog=produce.EXAMPLE)(produce.produce)
app.command(epilog=consume.EXAMPLE)(consume.consume)
app.add_typer(get_app, name="get")
app.add_typer(group_app, name="group")
app.add_typer(dlq_app, name="dlq")
app.add_typer(store_app, name="store")
app.add_typer(archive_app, name="archive")
app.add_typer(log_app, name="log")
app.add_typer(config_app, name="config")
app.add_typer(access_app, name="access")
app.command(epilog=completion.EXAMPLE)(completion.completion)

if __name__ == "__main__":
    app()
