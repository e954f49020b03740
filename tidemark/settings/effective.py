"""Effective settings of a service and the source of each value."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_settings import BaseSettings, CliApp, CliSettingsSource

from tidemark.settings.registry import PREFIX, variable


class SettingSource(enum.StrEnum):
    """Source of a setting's value."""

    ENVIRONMENT = "environment"
    FILE = "file"
    CONTEXT = "context"
    COMMAND_LINE = "command line"
    DEFAULT = "default"


class Setting(NamedTuple):
    """A value as JSON; a secret is shown as asterisks."""

    value: Any
    source: SettingSource


def effective(
    settings: type[BaseSettings],
    arguments: Sequence[str] = (),
    *,
    given: SettingSource = SettingSource.ENVIRONMENT,
) -> dict[str, Setting]:
    """Return the settings by their environment names, as a start with these *arguments* would read them.

    given: source to report for values from the environment

    Raises ValidationError and SettingsError like the class itself.
    """
    values = CliApp.run(settings, cli_args=list(arguments)) if arguments else settings()
    on_command_line = CliSettingsSource(settings, cli_parse_args=list(arguments))() if arguments else {}
    as_json = values.model_dump(mode="json")

    def source_of(field: str) -> SettingSource:
        if field in on_command_line:
            return SettingSource.COMMAND_LINE
        return given if field in values.model_fields_set else SettingSource.DEFAULT

    return {variable(field): Setting(as_json[field], source_of(field)) for field in settings.model_fields}


@contextmanager
def environment_of(path: Path) -> Iterator[None]:
    """Replace the variables TIDEMARK_… of this process by those of a file of lines NAME=value, for a `with` block.

    The file is read like systemd's EnvironmentFile=. Raises OSError if it cannot be read.
    """
    from dotenv import dotenv_values

    with path.open(encoding="utf-8") as file:
        in_file = dotenv_values(stream=file, interpolate=False)
    before = {name: value for name, value in os.environ.items() if name.upper().startswith(PREFIX)}
    now = {name: value or "" for name, value in in_file.items() if name.upper().startswith(PREFIX)}
    _replace(before, now)
    try:
        yield
    finally:
        _replace(now, before)


def _replace(before: dict[str, str], now: dict[str, str]) -> None:
    for name in before:
        os.environ.pop(name, None)
    os.environ.update(now)
