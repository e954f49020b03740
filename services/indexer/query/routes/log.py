"""The CommitLog's files, records and bytes, up to the committed offset."""

from __future__ import annotations

import binascii
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidemark.errors import OffsetOutOfRangeError, OffsetTooSmallError
from tidemark.read.log.log_files import written_end
from tidemark.read.log.log_pieces import LogStretch
from tidemark.store.flushed import read_flushed_offset

from ..pull.pull_response import json_response
from ..schema.log_responses import LogAnswer, LogBytesAnswer, LogRecordsAnswer
from ..schema.position import position_json
from ..schema.query_arguments import LogArguments, LogBytesArguments, LogRecordsArguments, described, read_arguments
from ..schema.responses import ProblemAnswer
from ..state.service_state import ServiceState, state_of
from ..web.route_access import GuardedRoute

router = APIRouter(tags=["log"], route_class=GuardedRoute)
_FAILURES: dict[int | str, dict[str, Any]] = {status: {"model": ProblemAnswer} for status in (410, 416, 422)}


@router.get("/v1/log", summary="The log's files", response_model=LogAnswer, openapi_extra=described(LogArguments))
async def list_files(request: Request) -> Response:
    """Return the written, flushed, committed and indexed positions of the log, and a page of its files."""
    arguments = read_arguments(request, LogArguments)
    state = state_of(request)
    return await state.reads.read(lambda: json_response(_log_json(state, arguments)))


def _log_json(state: ServiceState, arguments: LogArguments) -> dict[str, Any]:
    store = state.store
    watermark = store.watermark()
    committed = watermark.committed_offset
    limit = min(arguments.limit, state.settings.query_max_limit)
    files = state.log_files.page(from_offset=arguments.from_offset, limit=limit, committed_offset=committed)
    listing = store.log.known
    page_end = files[-1].start + listing.file_size if files else listing.end
    marks = store.watermarks.marks
    flushed = read_flushed_offset(store.paths.flushed)  # before written_end, so that it cannot be greater
    return {
        "store": state.settings.store_name,
        **position_json(watermark),
        "min_physical_offset": store.log_min,
        "written_offset": written_end(store.log, committed),
        "flushed_offset": flushed,
        "durable_offset": None if marks is None else min(marks.durable(shard) for shard in range(marks.shards)),
        "file_size_bytes": listing.file_size,
        "file_count": len(listing.starts),
        "limit": limit,
        "next_from": page_end if page_end < listing.end else None,
        "files": [file._asdict() for file in files],
    }


@router.get(
    "/v1/log/records",
    summary="Records in the order of the log",
    response_model=LogRecordsAnswer,
    responses=_FAILURES,
    openapi_extra=described(LogRecordsArguments),
)
async def list_records(request: Request) -> Response:
    """Return records, blank ends of files, and gaps in which no record starts, from a physical offset on.

    This route is for inspecting the log, not for reading messages: it also shows records above the watermark and
    records without a queue unit (`/v1/messages/at/` does not). A page may end early; continue at `next_from`.
    """
    arguments = read_arguments(request, LogRecordsArguments)
    state = state_of(request)
    most = min(arguments.max, state.settings.query_max_limit)

    def look() -> Response:
        watermark = state.store.watermark()
        start, end = arguments.from_offset, watermark.committed_offset
        _require_within(state, start, end)
        most_bytes = state.settings.query_max_log_scan_bytes
        stretch = LogStretch(state.store.log, start, end=end, most=most, most_bytes=most_bytes)
        records = [{**piece._asdict(), "kind": piece.kind.value} for piece in stretch.pieces()]
        return json_response(
            {
                "store": state.settings.store_name,
                **position_json(watermark),
                "max": most,
                "next_from": stretch.position,
                "records": records,
            }
        )

    return await state.reads.read(look)


@router.get(
    "/v1/log/bytes",
    summary="Bytes of the log",
    response_model=LogBytesAnswer,
    responses=_FAILURES,
    openapi_extra=described(LogBytesArguments),
)
async def get_bytes(request: Request) -> Response:
    """Return bytes of the log as stored, damaged or not. They end at the file's end or at the committed offset."""
    arguments = read_arguments(request, LogBytesArguments)
    state = state_of(request)

    def look() -> Response:
        start, end = arguments.from_offset, state.store.watermark().committed_offset
        _require_within(state, start, end)
        size = min(arguments.size, state.settings.query_max_log_bytes, end - start)
        data = state.store.log.read(start, size)
        return json_response(
            {
                "store": state.settings.store_name,
                "physical_offset": start,
                "file_start": start - start % max(1, state.store.log.known.file_size),
                "size": len(data),
                "data": binascii.b2a_base64(data, newline=False).decode(),
            }
        )

    return await state.reads.read(look)


def _require_within(state: ServiceState, physical_offset: int, end: int) -> None:
    """Raise OffsetTooSmallError below the log's minimum, and OffsetOutOfRangeError above the committed offset."""
    facts = {"min_offset": state.store.log_min, "max_offset": end}
    if physical_offset < facts["min_offset"]:
        raise OffsetTooSmallError(
            f"physical offset {physical_offset} is deleted: the log begins at {facts['min_offset']}", **facts
        )
    if physical_offset > end:
        raise OffsetOutOfRangeError(f"physical offset {physical_offset} is above the committed offset, {end}", **facts)
