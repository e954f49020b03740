"""How the store is: status, watermark, corruptions, health, metrics."""

from __future__ import annotations

import os
import time
from typing import Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from tidemark.errors import CorruptStoreError, StoreError
from tidemark.index.ledger import read_ledger
from tidemark.read.watermark import Watermark
from tidemark.store.lock import lock_holder
from tidemark.version import program_version

from .arguments import CorruptionArguments, described, read_arguments
from .bodies import json_response
from .facade import Facade, facade_of
from .models import CorruptionsAnswer, ProblemAnswer, WatermarkDetailAnswer
from .problems import of_store_error
from .routes_append import no_arguments

router = APIRouter(tags=["status"])
_STRICT = [Depends(no_arguments)]
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}


def _age_ms(watermark: Watermark) -> int | None:
    return _now_ms() - watermark.published_ms if watermark.published_ms else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@router.get("/v1/watermark", summary="How far may be read", response_model=WatermarkDetailAnswer, dependencies=_STRICT)
async def get_watermark(request: Request) -> Response:
    """Watermark, committed offset, lag."""
    facade = facade_of(request)
    watermark = facade.store.watermark()
    return json_response(
        {
            "store": facade.settings.store_name,
            **facade.position(watermark),
            "published_age_ms": _age_ms(watermark),
        }
    )


@router.get("/v1/status", summary="The store on one screen", dependencies=_STRICT)
async def get_status(request: Request) -> Response:
    """Who is there, how far everybody is, what is damaged, what room is left."""
    facade = facade_of(request)
    return await facade.read(lambda: json_response(_status(facade)))


def _status(facade: Facade) -> dict[str, Any]:
    store = facade.store
    watermark = store.watermark()
    marks = store.watermarks.marks
    term = store.watermarks.term
    holder = lock_holder(store.paths.lock)
    disk = os.statvfs(store.paths.root)
    listing = store.log.listing()
    return {
        "store": facade.settings.store_name,
        "version": program_version(),
        "attached": store.paths.is_attached,
        **facade.position(watermark),
        "log": {
            "min_physical_offset": listing.starts[0] if listing.starts else 0,
            "files": len(listing.starts),
            "file_size_bytes": listing.file_size,
        },
        "writer": {
            "present": holder is not None,
            "pid": holder or None,
            "term": term.number,
            "recovered_end_offset": term.recovered_end,
            "forwarding_to": facade.settings.writer_address,
        },
        "pipeline": {
            "published_age_ms": _age_ms(watermark),
            "alive_age_ms": None if marks is None or not marks.alive_ms else _now_ms() - marks.alive_ms,
            "shards": []
            if marks is None
            else [
                {
                    "shard": shard,
                    "visible": marks.visible(shard),
                    "durable": marks.durable(shard),
                    "term": marks.shard_term(shard),
                }
                for shard in range(marks.shards)
            ],
        },
        "corruptions": len(read_ledger(store.paths.indexer)),
        "topics": len(store.topics()),
        "disk": {"free_bytes": disk.f_bavail * disk.f_frsize, "total_bytes": disk.f_blocks * disk.f_frsize},
        "query": {"waiting_requests": facade.watcher.waiting, "owns_consumer_offsets": facade.offsets.is_owner},
    }


@router.get(
    "/v1/corruptions",
    summary="The ledger of damage",
    response_model=CorruptionsAnswer,
    openapi_extra=described(CorruptionArguments),
)
async def list_corruptions(request: Request) -> Response:
    """Places of the log that failed their check, each once, ascending."""
    arguments = read_arguments(request, CorruptionArguments)
    facade = facade_of(request)
    entries = await facade.read(read_ledger, facade.store.paths.indexer)
    limit = min(arguments.limit, facade.settings.query_max_limit)
    behind = [entry for entry in entries if entry["physical_offset"] > arguments.after]
    page = behind[:limit]
    return json_response(
        {
            "store": facade.settings.store_name,
            "total": len(entries),
            "limit": limit,
            "next_after": page[-1]["physical_offset"] if len(behind) > limit else None,
            "corruptions": page,
        }
    )


@router.get("/healthz", summary="This process answers", dependencies=_STRICT)
async def healthz() -> Response:
    """200 while it runs."""
    return json_response({"status": "ok"})


@router.get("/readyz", summary="The store can be read", responses={503: _PROBLEM}, dependencies=_STRICT)
async def readyz(request: Request) -> Response:
    """503 while marks cannot be read, or the log's files do not fit together."""
    facade = facade_of(request)

    def check() -> Response:
        try:
            facade.store.refresh()
            if facade.store.watermarks.marks is None:
                raise CorruptStoreError("the store was never indexed: there are no marks")
            facade.store.log.refresh()
            facade.store.topics()
        except (StoreError, OSError) as error:
            response = of_store_error(error if isinstance(error, StoreError) else CorruptStoreError(str(error)))
            response.status_code = 503
            return response
        return json_response({"status": "ready"})

    return await facade.read(check)


@router.get("/metrics", summary="Prometheus metrics", dependencies=_STRICT)
async def get_metrics(request: Request) -> Response:
    """Text format."""
    return Response(facade_of(request).metrics.render(), media_type="text/plain; version=0.0.4")
