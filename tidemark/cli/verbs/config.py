"""`tidemark config …`: the settings that the services would read."""

from __future__ import annotations

import contextlib
import enum
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tidemark.cli.terminal.context_option import chosen_context
from tidemark.cli.terminal.contexts import applied_context, complete_context
from tidemark.cli.terminal.exit_status import ExitStatus, say
from tidemark.cli.terminal.output import Output, OutputOption, print_json, print_table

if TYPE_CHECKING:
    from tidemark.settings.effective import Setting

app = typer.Typer(no_args_is_help=True, help="Show settings and their sources.")


class Reader(enum.StrEnum):
    """Programs that read settings."""

    CLIENT = "client"
    WRITER = "writer"
    PIPELINE = "pipeline"
    QUERY = "query"
    ATTACH = "attach"


_SHOWN = (Reader.CLIENT, Reader.WRITER, Reader.PIPELINE, Reader.QUERY)  # without attach, which requires a folder
_SERVICES = (Reader.WRITER, Reader.PIPELINE, Reader.QUERY, Reader.ATTACH)


class _Asked(NamedTuple):
    """Options of the services, the context of the client, and whether the variables are those of a file."""

    options: list[str]
    context: str | None
    is_file: bool


@app.callback()
def _config() -> None:
    """Show settings and their sources."""


@app.command(epilog="Example: TIDEMARK_FLUSH_MODE=async tidemark config show writer")
def show(
    ctx: typer.Context,
    reader: Annotated[Reader | None, typer.Argument(help="Service to show. Default: all but attach.")] = None,
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="SERVICE-OPTIONS", help="After --: options as on the service's own command line."),
    ] = None,
    env_file: Annotated[
        Path | None,
        typer.Option(
            help="Read TIDEMARK_ variables from this file (systemd's EnvironmentFile= format), not from this shell."
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show the client with this context. Default: as verbs choose it.",
            autocompletion=complete_context,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show every setting, its value and its source: environment, context, file, command line or default.

    The values are those that a service would read if it started here now. `tidemark serve` sets the store, addresses
    and file sizes of a new store itself. Secrets are shown as asterisks.
    Exit status 4 if a service would refuse to start: for an invalid value, or an unknown TIDEMARK_… variable.
    """
    from tidemark.settings.unknown import unknown_settings

    if options and reader not in _SERVICES:
        raise typer.BadParameter("name the one service that gets the options", param_hint="OPTIONS")
    with contextlib.ExitStack() as closing:
        if env_file is not None:
            from tidemark.settings.effective import environment_of

            closing.enter_context(environment_of(env_file))
        asked = _Asked(options or [], context or chosen_context(ctx), is_file=env_file is not None)
        settings = {
            of.value: found for of in (_SHOWN if reader is None else (reader,)) if (found := _settings_of(of, asked))
        }
        unknown = unknown_settings(os.environ)
    if output is Output.JSON:
        print_json({name: {of: one._asdict() for of, one in values.items()} for name, values in settings.items()})
    else:
        rows = [(name, of, *one) for name, values in settings.items() for of, one in values.items()]
        print_table(("service", "setting", "value", "from"), rows)
    for line in unknown:
        say(line)
    if unknown:
        raise typer.Exit(ExitStatus.REJECTED)


def _settings_of(reader: Reader, asked: _Asked) -> dict[str, Setting] | None:
    """Return the settings of *reader*; None if it is not installed.

    Raises ArgumentIllegalError for a value that a service would refuse.
    """
    from pydantic import ValidationError

    from tidemark.errors import ArgumentIllegalError
    from tidemark.settings.door import faults_of
    from tidemark.settings.effective import SettingSource, effective
    from tidemark.settings.registry import settings_class

    given = SettingSource.FILE if asked.is_file else SettingSource.ENVIRONMENT
    try:
        settings = settings_class(reader.value)
    except ModuleNotFoundError:
        return None
    is_client = reader is Reader.CLIENT
    with applied_context(asked.context) if is_client else contextlib.nullcontext(dict[str, str]()) as applied:
        try:
            shown = effective(settings, asked.options, given=given)
        except ValidationError as error:
            raise ArgumentIllegalError(f"{reader} would not start: {'; '.join(faults_of(error, settings))}") from error
    return shown | {name: shown[name]._replace(source=SettingSource.CONTEXT) for name in applied}
