"""`tidemark config …`: what the services would be set to."""

from __future__ import annotations

import contextlib
import enum
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.terminal.exit_status import ExitStatus, say
from tidemark.cli.terminal.output import Output, OutputOption, print_json, print_table

if TYPE_CHECKING:
    from tidemark.settings.effective import Setting

app = typer.Typer(no_args_is_help=True, help="Settings, and where each is from.")


class Reader(enum.StrEnum):
    """Who reads settings."""

    CLIENT = "client"
    WRITER = "writer"
    PIPELINE = "pipeline"
    QUERY = "query"
    ATTACH = "attach"


_SHOWN = (Reader.CLIENT, Reader.WRITER, Reader.PIPELINE, Reader.QUERY)  # attach must be told a folder
_WITH_OPTIONS = (Reader.PIPELINE, Reader.QUERY, Reader.ATTACH)


@app.callback()
def _config() -> None:
    """Settings, and where each is from."""


@app.command(epilog="Example: TIDEMARK_FLUSH_MODE=async tidemark config show writer")
def show(
    reader: Annotated[Reader | None, typer.Argument(help="Whose; all but attach, if not said.")] = None,
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="SERVICE-OPTIONS", help="Behind --: options as on the service's own command line."),
    ] = None,
    env_file: Annotated[
        Path | None,
        typer.Option(
            help="Instead of this shell's TIDEMARK_ variables those of a file, as EnvironmentFile= of systemd."
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show every setting, its value, and where that is from: environment, file, command line, or default.

    What a service would read if it was started here now; one that runs has been started with its own environment, and
    `tidemark serve` sets store, addresses and a new store's file sizes itself. Of a secret only asterisks are shown.
    Exit status 4 where a service would refuse to start: a value that is wrong, or a variable TIDEMARK_… that is none.
    """
    from tidemark.settings.unknown import unknown_settings

    if options and reader not in _WITH_OPTIONS:
        raise typer.BadParameter("only pipeline, query and attach take any", param_hint="OPTIONS")
    with contextlib.ExitStack() as closing:
        if env_file is not None:
            from tidemark.settings.effective import environment_of

            closing.enter_context(environment_of(env_file))
        settings = _settings_of(_SHOWN if reader is None else (reader,), options or [], is_file=env_file is not None)
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


def _settings_of(readers: tuple[Reader, ...], options: list[str], *, is_file: bool) -> dict[str, dict[str, Setting]]:
    """By reader; those that are not installed left out. ArgumentIllegalError for a value that would be refused."""
    from pydantic import ValidationError

    from tidemark.errors import ArgumentIllegalError
    from tidemark.settings.door import faults_of
    from tidemark.settings.effective import Source, effective
    from tidemark.settings.registry import settings_class

    given = Source.FILE if is_file else Source.ENVIRONMENT
    shown: dict[str, dict[str, Setting]] = {}
    for reader in readers:
        with contextlib.suppress(ModuleNotFoundError):
            settings = settings_class(reader.value)
            try:
                shown[reader.value] = effective(settings, options if reader in _WITH_OPTIONS else None, given=given)
            except ValidationError as error:
                raise ArgumentIllegalError(f"{reader} would not start: {'; '.join(faults_of(error))}") from error
    return shown
