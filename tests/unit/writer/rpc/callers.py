"""Callers of the writer's services, as the access interceptor sets them."""

from __future__ import annotations

from pathlib import Path

from services.writer.rpc.access_interceptor import CALLER
from tests.access_files import AccessFolder
from tidemark.access.access_file import AccessFile
from tidemark.access.guard import Guard
from tidemark.access.identity import Presented
from tidemark.access.rate_limits import RateLimits
from tidemark.settings.reloaded_files import ReloadedFiles


def call_as_anyone() -> None:
    """Make the next calls of this task those of a client of a writer without an access file."""
    guard = Guard(None, RateLimits(), None)
    CALLER.set(guard.admit(Presented(None, None), address="10.0.0.1", action="Call"))


def call_with_rights(folder: Path, actions: list[str], *resources: str) -> None:
    """Make the next calls of this task those of a principal with only these rights."""
    folder.mkdir()
    files = AccessFolder(folder)
    token = files.principal("limited")
    files.rule("limited", actions, *resources)
    access = ReloadedFiles(AccessFile(files.path), every_ms=10_000, on_reload=lambda _: None)
    CALLER.set(Guard(access, RateLimits(), None).admit(Presented(token, None), address="10.0.0.1", action="Call"))
