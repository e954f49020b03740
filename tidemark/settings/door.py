"""Reading of a service's settings at its start, with one line per fault."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings, CliApp, SettingsConfigDict, SettingsError

from tidemark.settings.registry import PREFIX, variable
from tidemark.settings.unknown import unknown_settings

_Settings = TypeVar("_Settings", bound=BaseSettings)
_FIELD = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")  # a word of several parts, so that no English word is meant


class SettingsRefusedError(Exception):
    """The settings are invalid. lines: one fault each, without the value of any setting."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = tuple(lines)


def service_config(command: str) -> SettingsConfigDict:
    """Return how the settings of a service are read: from variables TIDEMARK_…, and from options of its *command*."""
    return SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, cli_prog_name=command, cli_kebab_case=True, cli_implicit_flags=True
    )


def read_settings(service: str, settings: type[_Settings], arguments: Sequence[str] = ()) -> _Settings:
    """Read *settings* from the environment and, with precedence, from a command line's *arguments*.

    Raises SettingsRefusedError, also for a variable TIDEMARK_… that no service and no client reads;
    SystemExit for --help and for an unknown option.
    """
    lines: list[str] = []
    read: _Settings | None = None
    try:
        read = CliApp.run(settings, cli_args=list(arguments)) if arguments else settings()  # without a parser: quicker
    except ValidationError as error:
        lines = faults_of(error, settings)
    except SettingsError as error:
        lines = [str(error)]
    lines += unknown_settings(os.environ)
    if read is None or lines:
        raise SettingsRefusedError([f"{service}: {line}" for line in lines])
    return read


def faults_of(error: ValidationError, settings: type[BaseSettings]) -> list[str]:
    """Format one line per fault with the environment names of settings. The text of *error* itself contains values."""
    return [
        ": ".join(
            [*([variable("_".join(map(str, fault["loc"])))] if fault["loc"] else []), _text(fault["msg"], settings)]
        )
        for fault in error.errors(include_url=False, include_input=False)
    ]


def _text(message: str, settings: type[BaseSettings]) -> str:
    """Return pydantic's *message* with environment names in place of fields, for a fault of several settings."""

    def named(field: re.Match[str]) -> str:
        return variable(field[0]) if field[0] in settings.model_fields else field[0]

    return _FIELD.sub(named, message.removeprefix("Value error, "))
