"""Arguments that are names of topics and groups, and the shell's completions of names.

A completion asks the query service, for at most a second. Without an answer there are no completions, and no error.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from tidemark.cli.terminal.context_option import chosen_context
from tidemark.cli.terminal.contexts import VARIABLES, applied_context
from tidemark.cli.terminal.service_addresses import DEFAULT_QUERY_URL

_TIMEOUT_S = 1.0
_INTERNAL = "%"  # begins the names of topics for retries and dead letters


def complete_topic(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the topics that begin with *incomplete*; those of groups only if their percent sign is typed."""
    names = _names(ctx, "/v1/topics", "topics", "topic")
    return [name for name in names if _matches(name, incomplete)]


def complete_group(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the groups that begin with *incomplete*."""
    return [name for name in _names(ctx, "/v1/groups", "groups", "group") if name.startswith(incomplete)]


def _matches(topic: str, incomplete: str) -> bool:
    return topic.startswith(incomplete) and topic.startswith(_INTERNAL) == incomplete.startswith(_INTERNAL)


def _names(ctx: typer.Context, path: str, items: str, name: str) -> list[str]:
    try:
        from tidemark.client import Query

        with applied_context(chosen_context(ctx)):
            url = ctx.params.get("query") or os.environ.get(VARIABLES["query"]) or DEFAULT_QUERY_URL
            with Query(url, timeout_s=_TIMEOUT_S) as service:
                return [str(item[name]) for item in service.get(path)[items]]
    except Exception:  # an error would be printed into the line that is typed
        return []


TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.", autocompletion=complete_topic)]
GroupName = Annotated[
    str, typer.Argument(metavar="GROUP", help="The consumer group's name.", autocompletion=complete_group)
]
