"""Pulls from many queues by one request."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidemark.access.right import READING, on_topic
from tidemark.errors import ArgumentIllegalError, StoreError

from ..pull.multi_pull import ManyQueues
from ..pull.multi_pull_response import refused_part, response_of
from ..pull.pull_response import BodyFormat, PullAnswerer, PullBody, accepted_format
from ..pull.pulled import AnswerLimits, Pulled
from ..pull.queue_pull import QueuePull
from ..schema.request_bodies import PullQueuesBody
from ..schema.responses import ProblemAnswer, PullsAnswer
from ..state.service_state import state_of
from ..web.plain_route import PlainRoute
from ..web.route_access import caller_of
from .append import described_body, no_arguments, read_json

router = APIRouter(tags=["messages"], route_class=PlainRoute)
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}


@router.post(
    "/v1/pull",
    summary="Pull from many queues",
    response_class=Response,
    responses={
        200: {
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/PullsAnswer"}},
                "multipart/mixed": {"schema": {"type": "string", "format": "binary"}},
            },
            "model": PullsAnswer,
            "description": "If the Accept header selects another format than JSON, the answer is multipart/mixed. Each "
            "part answers a pull from one queue; a refused queue has a part of application/problem+json.",
        },
        204: {"description": "No queue has a part, and the format is not JSON"},
        **dict.fromkeys((404, 406, 413, 422, 429), _PROBLEM),
    },
    openapi_extra=described_body(PullQueuesBody),
)
async def pull_queues(request: Request) -> Response:
    """Return messages of many queues, from a queue offset on in each, by one request.

    Queues are read in the request's order until the answer is full; `looked_at` is their number. A queue without new
    messages has no answer, unless its offset is `earliest` or `latest`. `wait_ms` waits until any queue has messages.
    """
    no_arguments(request)
    state = state_of(request)
    body = await read_json(request, PullQueuesBody, state.settings.query_max_request_bytes)
    _require_few(body, state.settings.query_max_pull_queues)
    for topic in {queue.topic for queue in body.queues}:
        caller_of(request).require(on_topic(topic, *READING))
    state.require_store(body.store)
    state.answers.require_room()
    body_format = accepted_format(request.headers.get("accept"))
    limits = AnswerLimits.of(body, state.settings, whole_records=body_format is BodyFormat.RECORDS)
    pulls = [QueuePull(state, queue.topic, queue.queue_id, queue.offset, limits) for queue in body.queues]

    def make(pull: QueuePull, pulled: Pulled) -> PullBody:
        def answer(pulled: Pulled) -> PullBody:
            answerer = PullAnswerer(state, pull.topic, pull.queue_id)
            return answerer.body(pulled, body_format, body.body_encoding)

        spans = request.app.state.pull_spans
        return (answer if spans is None else spans.around(answer, pull.topic, pull.queue_id))(pulled)

    def refuse(pull: QueuePull, error: StoreError) -> PullBody:
        return refused_part(error, pull.topic, pull.queue_id)

    many = ManyQueues(state, pulls, limits, make, refuse)
    parts = await many.run(request)
    return response_of(parts, many.looked_at, body_format, state)


def _require_few(body: PullQueuesBody, most: int) -> None:
    if len(body.queues) > most:
        raise ArgumentIllegalError(
            f"queues: {len(body.queues)} in one request, at most {most} (TIDEMARK_QUERY_MAX_PULL_QUEUES)",
            argument="queues",
            limit=most,
        )
