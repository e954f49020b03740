"""Lookups of many keys or queue offsets by one request."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidemark.errors import ArgumentIllegalError

from ..pull.pull_response import json_response
from ..schema.position import position_json
from ..schema.query_arguments import TopicName
from ..schema.request_bodies import LookupBody
from ..schema.responses import LookupAnswer, ProblemAnswer
from ..state.service_state import ServiceState, state_of
from ..web.plain_route import PlainRoute
from .append import described_body, no_arguments, read_json
from .lookup_results import Lookup

router = APIRouter(tags=["messages"], route_class=PlainRoute)
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}


@router.post(
    "/v1/topics/{topic}/messages:lookup",
    summary="Look up many keys, unique keys or queue offsets",
    response_model=LookupAnswer,
    responses=dict.fromkeys((404, 413, 422), _PROBLEM),
    openapi_extra=described_body(LookupBody),
)
async def look_up_many(request: Request, topic: TopicName) -> Response:
    """Return one result for each key or offset, in the request's order, with messages as in single lookups.

    A key without messages has an empty result. An offset without a message has a `reason`; the request does not fail.
    If the answer is full, it has fewer results; `looked_at` is their number, and at least 1.
    """
    no_arguments(request)
    state = state_of(request)
    asked = await read_json(request, LookupBody, state.settings.query_max_request_bytes)
    state.require_store(asked.store)
    _require_few(asked, state.settings.query_max_lookups)
    return await state.reads.read(_answer, state, topic, asked)


def _require_few(asked: LookupBody, most: int) -> None:
    for name in ("keys", "unique_keys", "offsets"):
        count = len(getattr(asked, name) or ())
        if count > most:
            raise ArgumentIllegalError(
                f"{name}: {count} in one request, at most {most} (TIDEMARK_QUERY_MAX_LOOKUPS): "
                "send the others in further requests",
                argument=name,
                limit=most,
            )


def _answer(state: ServiceState, topic: str, asked: LookupBody) -> Response:
    state.store.topic(topic)
    watermark = state.store.watermark()
    lookup = Lookup(state, watermark, topic, asked)
    results = lookup.results()
    return json_response(
        {
            "store": state.settings.store_name,
            "topic": topic,
            **position_json(watermark),
            "limit": lookup.limit,
            "looked_at": len(results),
            "results": results,
        }
    )
