"""Status of the store: watermark, damage, health and metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from tidemark.errors import CorruptStoreError, StoreClosedError, StoreError
from tidemark.index.ledger import read_ledger
from tidemark.status import status_of

from ..pull.pull_response import json_response
from ..schema.position import position_json
from ..schema.query_arguments import CorruptionArguments, described, read_arguments
from ..schema.responses import CorruptionsAnswer, ProblemAnswer, WatermarkDetailAnswer
from ..state.service_state import state_of
from ..web.problems import problem
from ..web.route_access import GuardedRoute
from .append import no_arguments
from .status_document import published_age_ms, status_answer

router = APIRouter(tags=["status"], route_class=GuardedRoute)
_STRICT = [Depends(no_arguments)]
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}


@router.get("/v1/watermark", summary="The watermark", response_model=WatermarkDetailAnswer, dependencies=_STRICT)
async def get_watermark(request: Request) -> Response:
    """Return the watermark, the committed offset, and the lag between them in bytes.

    `remoting_address` is the host and port from which RocketMQ's clients read; null: none.
    """
    state = state_of(request)
    watermark = state.store.watermark()
    return json_response(
        {
            "store": state.settings.store_name,
            **position_json(watermark),
            "published_age_ms": published_age_ms(watermark),
            "remoting_address": None if state.remoting is None else state.remoting.address,
        }
    )


@router.get("/v1/status", summary="Status of the store", dependencies=_STRICT)
async def get_status(request: Request) -> Response:
    """Return the state of the writer, the pipeline, the groups, the disk and the damage.

    A value is `null` if it cannot be known. For example, `disk.full_in_s` is `null` until the log's store times show
    its growth.
    """
    state = state_of(request)
    return await state.reads.read(lambda: json_response(status_answer(state)))


@router.get(
    "/v1/corruptions",
    summary="The ledger of damage",
    response_model=CorruptionsAnswer,
    openapi_extra=described(CorruptionArguments),
)
async def list_corruptions(request: Request) -> Response:
    """Return places of the log that failed their check, each once and ascending, and queue units that pulls skipped."""
    arguments = read_arguments(request, CorruptionArguments)
    state = state_of(request)
    entries = await state.reads.read(read_ledger, state.store.paths.indexer)
    limit = min(arguments.limit, state.settings.query_max_limit)
    behind = [entry for entry in entries if entry["physical_offset"] > arguments.after]
    page = behind[:limit]
    return json_response(
        {
            "store": state.settings.store_name,
            "total": len(entries),
            "limit": limit,
            "next_after": page[-1]["physical_offset"] if len(behind) > limit else None,
            "corruptions": page,
            "lost_units": state.lost_units.all()[:limit] if arguments.after < 0 else [],
        }
    )


@router.get("/healthz", summary="This process answers", dependencies=_STRICT)
async def healthz() -> Response:
    """Return 200 while the process runs."""
    return json_response({"status": "ok"})


@router.get("/readyz", summary="The store can be read", responses={503: _PROBLEM}, dependencies=_STRICT)
async def readyz(request: Request) -> Response:
    """Return 503 while the watermark or the log's files cannot be read, and after the service was asked to stop."""
    state = state_of(request)
    if state.is_draining:
        raise StoreClosedError("the service is stopping")

    def check() -> Response:
        try:
            state.store.refresh()
            if state.store.watermarks.marks is None:
                raise CorruptStoreError("the store was never indexed: start the pipeline")
            state.store.log.refresh()
            state.store.topics()
        except (StoreError, OSError) as error:
            cause = error if isinstance(error, StoreError) else CorruptStoreError(str(error))
            return problem(503, status_of(cause).reason, cause.message, cause.facts)
        return json_response({"status": "ready"})

    return await state.reads.read(check)


@router.get("/metrics", summary="Prometheus metrics", response_class=PlainTextResponse, dependencies=_STRICT)
async def get_metrics(request: Request) -> Response:
    """Return the metrics in Prometheus' text format."""
    state = state_of(request)
    return Response(await state.reads.read(state.metrics.render), media_type="text/plain; version=0.0.4")
