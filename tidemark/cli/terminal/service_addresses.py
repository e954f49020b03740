"""Addresses of the services: the two options of client verbs, and a Query that reports a wrong URL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

if TYPE_CHECKING:
    from tidemark.client import Query

DEFAULT_WRITER_ADDRESS = "127.0.0.1:8081"  # the value in tidemark.client.settings, whose import is slow
DEFAULT_QUERY_URL = "http://127.0.0.1:8080"


def _writer_or_default(address: str | None) -> str:
    return address or DEFAULT_WRITER_ADDRESS


def _query_or_default(url: str | None) -> str:
    return url or DEFAULT_QUERY_URL


WriterAddress = Annotated[
    str | None,
    typer.Option(
        "--writer",
        envvar="TIDEMARK_WRITER_ADDRESS",
        metavar="HOST:PORT",
        help="Address of the writer (gRPC).",
        show_default=DEFAULT_WRITER_ADDRESS,
        callback=_writer_or_default,
    ),
]
QueryUrl = Annotated[
    str | None,
    typer.Option(
        "--query",
        envvar="TIDEMARK_QUERY_URL",
        metavar="URL",
        help="URL of the query service (REST).",
        show_default=DEFAULT_QUERY_URL,
        callback=_query_or_default,
    ),
]


@contextlib.contextmanager
def open_query(url: str | None) -> Iterator[Query]:
    """Open a Query on *url*."""
    from tidemark.client import Query

    try:
        query = Query(url)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--query") from None
    with query:
        yield query


def topic_path(topic: str) -> str:
    """Return the path of *topic* in the REST API. Names of %RETRY% topics need quoting.

    Raises TopicIllegalError for a name that no topic has.
    """
    from tidemark.errors import TopicIllegalError
    from tidemark.format.topic_name import is_topic_name

    if not is_topic_name(topic):
        raise TopicIllegalError(
            f"{topic!r} is not a topic's name, which has 1 to 255 letters, digits and %|-_", topic=topic
        )
    return f"/v1/topics/{quote(topic, safe='')}"
