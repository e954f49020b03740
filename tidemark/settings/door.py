"""How a service's door reads its settings: all of what is wrong with them, a line each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings, CliApp, SettingsError

from tidemark.settings.registry import variable
from tidemark.settings.unknown import unknown_settings

_Settings = TypeVar("_Settings", bound=BaseSettings)


class SettingsRefusedError(Exception):
    """The service cannot be started so. lines: what is wrong, no value of any setting in it."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = tuple(lines)


def read_settings(service: str, settings: type[_Settings], arguments: Sequence[str] | None = None) -> _Settings:
    """From the environment, and over it from a command line's *arguments*, where the service takes any.

    raises SettingsRefusedError also for a variable TIDEMARK_… that neither a service nor a client reads; SystemExit for
           --help, and for an option that there is not
    """
    lines: list[str] = []
    read: _Settings | None = None
    try:
        read = settings() if arguments is None else CliApp.run(settings, cli_args=list(arguments))
    except ValidationError as error:
        lines = faults_of(error)
    except SettingsError as error:
        lines = [str(error)]
    lines += unknown_settings(os.environ)
    if read is None or lines:
        raise SettingsRefusedError([f"{service}: {line}" for line in lines])
    return read


def faults_of(error: ValidationError) -> list[str]:
    """A line a fault, with the name that the setting has in the environment. (The error's own text has values.)"""
    return [
        ": ".join([*([variable("_".join(map(str, fault["loc"])))] if fault["loc"] else []), fault["msg"]])
        for fault in error.errors(include_url=False, include_input=False)
    ]
