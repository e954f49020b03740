"""The verb `status`: who answers, and how far everybody is, on one screen."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from tidemark.cli.addresses import DEFAULT_WRITER_ADDRESS, QueryUrl, WriterAddress
from tidemark.cli.failures import ExitStatus
from tidemark.cli.output import Output, StreamOption, console, make_facts, print_json

EXAMPLE = "Example: tidemark status --watch"
_WRITER_TIMEOUT_S = _QUERY_TIMEOUT_S = 3.0
_LONGEST_QUIET_MS = 10_000  # of a pipeline that is there: its tasks tell so every second
_REFRESH_S = 1.0
_Status = dict[str, Any]


def status(
    query: QueryUrl = None,
    writer: WriterAddress = None,
    output: StreamOption = Output.TABLE,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again every second, until Ctrl-C.")] = False,
) -> None:
    """Show which services answer, and how far all is.

    Exit status 1 when a service does not answer, 5 when none does.
    """
    if watch:
        _watch(query, writer, output)
    seen = look(query, writer)
    if output is Output.JSON:
        print_json(seen)
    else:
        console().print(_screen(seen), soft_wrap=False)
    raise typer.Exit(exit_status(seen))


def look(query: str | None, writer: str | None) -> _Status:
    """What the services say of themselves: `query`, `writer`, `pipeline` each with `answers`; `store` is null, or what
    GET /v1/status says."""
    asked, store = _ask_query(query)
    is_attached = bool(store and store["attached"])
    pipeline = store["pipeline"] if store else None
    quiet_ms = pipeline["alive_age_ms"] if pipeline else None
    return {
        "query": asked,
        "writer": {"address": None, "answers": True, "problem": None} if is_attached else _ask_writer(writer),
        "pipeline": {"answers": quiet_ms is not None and quiet_ms < _LONGEST_QUIET_MS, "quiet_ms": quiet_ms},
        "store": store,
    }


def exit_status(seen: _Status) -> ExitStatus:
    """OK when all are there."""
    answers = [seen[name]["answers"] for name in ("query", "writer", "pipeline")]
    if all(answers):
        return ExitStatus.OK
    return ExitStatus.FAILED if any(answers) else ExitStatus.UNAVAILABLE


def _ask_query(url: str | None) -> tuple[_Status, _Status | None]:
    from tidemark.client import Query
    from tidemark.errors import StoreError

    try:
        with Query(url, timeout_s=_QUERY_TIMEOUT_S) as service:
            asked: _Status = {"url": service.url, "answers": True, "problem": None}
            try:
                return asked, service.get("/v1/status")
            except StoreError as error:
                return {**asked, "answers": False, "problem": error.message}, None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--query") from None


def _ask_writer(address: str | None) -> _Status:
    from tidemark.client import Producer
    from tidemark.errors import StoreError

    asked: _Status = {"address": address or DEFAULT_WRITER_ADDRESS, "answers": True, "problem": None}
    with Producer(address, timeout_s=_WRITER_TIMEOUT_S) as producer:
        try:
            producer.log_info()
        except StoreError as error:
            return {**asked, "answers": False, "problem": error.message}
        return asked


def _watch(query: str | None, writer: str | None, output: Output) -> None:
    """Until Ctrl-C."""
    if output is Output.JSON:
        while True:
            print_json(look(query, writer))
            time.sleep(_REFRESH_S)
    from rich.live import Live

    with Live(_screen(look(query, writer)), console=console(), auto_refresh=False) as live:
        while True:
            time.sleep(_REFRESH_S)
            live.update(_screen(look(query, writer)), refresh=True)


def _screen(seen: _Status) -> Any:
    store = seen["store"]
    facts: dict[str, object] = {
        "query": _service(seen["query"], seen["query"]["url"]),
        "writer": "none: attached, read-only"
        if store and store["attached"]
        else _service(seen["writer"], seen["writer"]["address"]),
        "pipeline": "follows" if seen["pipeline"]["answers"] else _why_quiet(seen),
    }
    if store:
        facts |= _store_facts(store)
    return make_facts(facts)


def _service(asked: _Status, address: str) -> str:
    return f"{address}  answers" if asked["answers"] else f"{address}  DOES NOT ANSWER: {asked['problem']}"


def _why_quiet(seen: _Status) -> str:
    if seen["store"] is None:
        return "unknown: the query service would tell"
    quiet_ms = seen["pipeline"]["quiet_ms"]
    return "IS NOT THERE" if quiet_ms is None else f"IS NOT THERE: quiet for {quiet_ms / 1000:,.0f} s"


def _store_facts(store: _Status) -> dict[str, object]:
    disk, log = store["disk"], store["log"]
    free, total = disk["free_bytes"], disk["total_bytes"]
    return {
        "store": f"{store['store']}, term {store['watermark']['term']}, version {store['version']}",
        "watermark": store["watermark"]["physical_offset"],
        "committed": store["committed_offset"],
        "lag, bytes": store["lag_bytes"],
        "log": f"from {log['min_physical_offset']:,}: {log['files']} files of {log['file_size_bytes']:,} bytes",
        "topics": store["topics"],
        "damaged places": store["corruptions"],
        "disk": f"{free / 1e9:,.1f} GB free of {total / 1e9:,.1f} GB ({free / max(1, total):.0%})",
    }
