"""Where the services are: the two options that verbs of a client have, and a Query that says what to do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

if TYPE_CHECKING:
    from tidemark.client import Query

DEFAULT_WRITER_ADDRESS = "127.0.0.1:8081"  # as tidemark.client.settings has them, which takes long to import
DEFAULT_QUERY_URL = "http://127.0.0.1:8080"
WriterAddress = Annotated[
    str | None,
    typer.Option(
        "--writer",
        envvar="TIDEMARK_WRITER_ADDRESS",
        metavar="HOST:PORT",
        help="The writer (gRPC).",
        show_default=DEFAULT_WRITER_ADDRESS,
    ),
]
QueryUrl = Annotated[
    str | None,
    typer.Option(
        "--query",
        envvar="TIDEMARK_QUERY_URL",
        metavar="URL",
        help="The query service (REST).",
        show_default=DEFAULT_QUERY_URL,
    ),
]
_NEXT_STEP = "is the query service running? start one with `tidemark serve`, or name it with --query URL"


@contextlib.contextmanager
def open_query(url: str | None) -> Iterator[Query]:
    """A Query on *url*; where nobody answers, the error tells what to do."""
    from tidemark.client import Query
    from tidemark.errors import UnavailableError

    try:
        query = Query(url)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--query") from None
    with query:
        try:
            yield query
        except UnavailableError as error:
            if type(error) is UnavailableError:  # not one that the service has answered with
                error.add_note(_NEXT_STEP)
            raise


def topic_path(topic: str) -> str:
    """Of a topic in the REST API; %RETRY% topics need quoting."""
    return f"/v1/topics/{quote(topic, safe='')}"
