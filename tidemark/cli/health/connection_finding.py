"""The line of `doctor` with the addresses and credentials of services, and their sources."""

from __future__ import annotations

import os

import typer

from tidemark.cli.health.finding import DoctorFinding, Level
from tidemark.cli.terminal.context_option import source_of
from tidemark.cli.terminal.contexts import VARIABLES
from tidemark.cli.terminal.service_addresses import DEFAULT_QUERY_URL, DEFAULT_WRITER_ADDRESS


def connection_finding(ctx: typer.Context, writer: str | None, query: str | None) -> DoctorFinding:
    """Return the values that connect to services: options, variables, those of a context, or defaults."""
    others = {key: os.environ.get(variable) for key, variable in VARIABLES.items() if key not in ("writer", "query")}
    values = {"writer": writer or DEFAULT_WRITER_ADDRESS, "query": query or DEFAULT_QUERY_URL, **others}
    text = ", ".join(f"{key} {value} ({source_of(ctx, key)})" for key, value in values.items() if value)
    if os.environ.get("TIDEMARK_TOKEN"):
        text += ", token, which precedes token_file (environment)"
    return DoctorFinding(Level.OK, "connection", text)
