"""The verb `status`: health of a store's services, pipeline, log and disk on one screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tidemark.cli.health.status_problems import HealthLimits, problems_of
from tidemark.cli.health.status_screen import screen
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.cli.terminal.output import Output, StreamOption, console, print_json
from tidemark.cli.terminal.service_addresses import DEFAULT_WRITER_ADDRESS, QueryUrl, WriterAddress

if TYPE_CHECKING:
    from tidemark.errors import StoreError

EXAMPLE = "Example: tidemark status --follow"
_WRITER_TIMEOUT_S = _QUERY_TIMEOUT_S = 3.0
_LONGEST_QUIET_MS = 10_000  # a running pipeline's tasks report every second
_REFRESH_S = 1.0
_Status = dict[str, Any]


class _Targets(NamedTuple):
    """The services to ask, and the limits of a healthy store."""

    query: str | None
    writer: str | None
    limits: HealthLimits


def status(
    query: QueryUrl = None,
    writer: WriterAddress = None,
    max_behind_s: Annotated[
        float,
        typer.Option(min=0, help="Unhealthy if the oldest message that is not visible yet is older (seconds)."),
    ] = 60,
    min_disk_hours: Annotated[
        float, typer.Option(min=0, help="Unhealthy if the disk will be full sooner, at the log's recent growth.")
    ] = 24,
    output: StreamOption = Output.TABLE,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", "--watch", "-w", help="Refresh every second, until Ctrl-C.")
    ] = False,
) -> None:
    """Show on one screen whether the store is healthy.

    It shows whether the writer accepts appends, how far behind the pipeline is, the damaged places, when the disk will
    be full, and which groups lag most. `unknown` marks values that cannot be determined.

    Exit status 1: unhealthy; the lines under `problems` give the reasons. 5: no service answers.
    """
    asked = _Targets(query, writer, HealthLimits(max_behind_s, min_disk_hours))
    if follow:
        _follow(asked, output)
    seen = look(asked)
    if output is Output.JSON:
        print_json(seen)
    else:
        console().print(screen(seen), soft_wrap=False)
    raise typer.Exit(exit_status(seen))


def look(asked: _Targets) -> _Status:
    """Return the services' state: `query`, `writer` and `pipeline`, each with `answers`; `store`, the answer to
    GET /v1/status or null; and `problems`, one line each, empty for a healthy store.
    """
    told, store = _ask_query(asked.query)
    is_attached = bool(store and store["attached"])
    pipeline = store["pipeline"] if store else None
    quiet_ms = pipeline["alive_age_ms"] if pipeline else None
    seen = {
        "query": told,
        "writer": {"address": None, "answers": True, "problem": None} if is_attached else _ask_writer(asked.writer),
        "pipeline": {"answers": quiet_ms is not None and quiet_ms < _LONGEST_QUIET_MS, "quiet_ms": quiet_ms},
        "store": store,
    }
    problems = problems_of(seen, asked.limits, now_ms=time.time_ns() // 1_000_000)
    return {"healthy": not problems, "problems": problems, **seen}


def exit_status(seen: _Status) -> ExitStatus:
    """Return OK for a healthy store, UNAVAILABLE if no service answers, otherwise FAILED."""
    if not any(seen[name]["answers"] or seen[name].get("refuses") for name in ("query", "writer", "pipeline")):
        return ExitStatus.UNAVAILABLE
    return ExitStatus.OK if seen["healthy"] else ExitStatus.FAILED


def _ask_query(url: str | None) -> tuple[_Status, _Status | None]:
    from tidemark.client import Query
    from tidemark.errors import StoreError

    try:
        with Query(url, timeout_s=_QUERY_TIMEOUT_S) as service:
            asked: _Status = {"url": service.url, "answers": True, "problem": None}
            try:
                return asked, service.get("/v1/status")
            except StoreError as error:
                return {**asked, **_unanswered(error)}, None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--query") from None


def _ask_writer(address: str | None) -> _Status:
    from tidemark.client import Producer
    from tidemark.errors import StoreError
    from tidemark.v1.commit_log_pb2 import FLUSH_MODE_ASYNC

    asked: _Status = {"address": address or DEFAULT_WRITER_ADDRESS, "answers": True, "problem": None}
    with Producer(address, timeout_s=_WRITER_TIMEOUT_S) as producer:
        try:
            told = producer.log_info()
        except StoreError as error:
            return {**asked, **_unanswered(error)}
        return {
            **asked,
            "flush_mode": "async" if told.flush_mode == FLUSH_MODE_ASYNC else "sync",
            "free_disk_bytes": told.free_disk_bytes,
            "min_free_disk_bytes": told.min_free_disk_bytes,
        }


def _unanswered(error: StoreError) -> _Status:
    """Return the state of a service that did not answer. refuses: it is running, but rejects the request."""
    from tidemark.errors import ForbiddenError, UnauthenticatedError

    refuses = isinstance(error, ForbiddenError | UnauthenticatedError)
    return {"answers": False, "refuses": refuses, "problem": error.message}


def _follow(asked: _Targets, output: Output) -> None:
    """Until Ctrl-C."""
    if output is Output.JSON:
        while True:
            print_json(look(asked))
            time.sleep(_REFRESH_S)
    from rich.live import Live

    with Live(screen(look(asked)), console=console(), auto_refresh=False) as live:
        while True:
            time.sleep(_REFRESH_S)
            live.update(screen(look(asked)), refresh=True)
