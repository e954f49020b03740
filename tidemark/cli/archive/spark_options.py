"""Options of verbs that run Spark, and their session."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Annotated, Any

import typer

from tidemark.errors import ArgumentIllegalError
from tidemark.local.java import require_java

MasterOption = Annotated[str, typer.Option(help="Spark master: local, or a cluster that also has access to DIR.")]
ConfOption = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Set a Spark property. Repeatable.")
]
LOCAL = "local[*]"


def parse_conf(given: list[str] | None) -> dict[str, str]:
    """Return the properties by name. Raises ArgumentIllegalError for an entry without a name or `=`."""
    pairs = [entry.partition("=") for entry in given or []]
    wrong = next((name for name, equals, _ in pairs if not equals or not name), None)
    if wrong is not None:
        raise ArgumentIllegalError(f"--conf {wrong}: must be KEY=VALUE", argument="--conf")
    return {name: value for name, _, value in pairs}


def open_session(master: str, settings: dict[str, str]) -> AbstractContextManager[Any]:
    """Open a Spark session; Spark is imported only when there is work for it.

    Raises StoreContradictionError if no suitable Java is installed, UnavailableError if Spark does not start.
    """
    from tidemark.archive.session import spark_session

    require_java()
    return spark_session(master, settings)
