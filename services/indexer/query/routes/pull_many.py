"""Pulls from many queues by one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response

from tidemark.access.right import READING, on_topic
from tidemark.errors import ArgumentIllegalError, StoreError

from ..follow.opening import open_follower
from ..follow.positions import Position, parse_position
from ..pull.answer_form import AnswerForm
from ..pull.multi_pull import ManyQueues
from ..pull.multi_pull_response import refused_part, response_of
from ..pull.pull_response import PullAnswerer, PullBody
from ..pull.pulled import AnswerLimits, Pulled
from ..pull.queue_pull import QueuePull
from ..schema.query_arguments import PullLimits, QueuesArguments, described, read_arguments
from ..schema.request_bodies import PullQueuesBody
from ..schema.responses import ProblemAnswer, PullsAnswer
from ..state.service_state import state_of
from ..web.plain_route import PlainRoute
from ..web.route_access import caller_of, may_read_store
from .append import described_body, no_arguments, read_json

router = APIRouter(tags=["messages"], route_class=PlainRoute)
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}


_DESCRIBED: dict[str, Any] = {
    "response_class": Response,
    "responses": {
        200: {
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/PullsAnswer"}},
                "multipart/mixed": {"schema": {"type": "string", "format": "binary"}},
            },
            "model": PullsAnswer,
            "description": "If the Accept header selects another format than JSON, the answer is multipart/mixed. Each "
            "part answers a pull from one queue; a refused queue has a part of application/problem+json. With "
            "follow=true there are no parts: each message names its queue.",
        },
        204: {"description": "No queue has a part, and the format is not JSON"},
        **dict.fromkeys((404, 406, 413, 422, 429), _PROBLEM),
    },
}


@router.post("/v1/pull", summary="Pull from many queues", openapi_extra=described_body(PullQueuesBody), **_DESCRIBED)
async def pull_queues(request: Request) -> Response:
    """Return messages of many queues, from a queue offset on in each, by one request.

    Queues are read in the request's order until the answer is full; `looked_at` is their number. A queue without new
    messages has no answer, unless its offset is `earliest` or `latest`. `wait_ms` waits until any queue has messages.

    With `follow=true` the answer stays open and gets each message as it becomes visible. The header `Last-Event-ID`
    replaces the offsets.
    """
    no_arguments(request)
    body = await read_json(request, PullQueuesBody, state_of(request).settings.query_max_request_bytes)
    own = {(one.topic, one.queue_id): one.max_messages for one in body.queues if one.max_messages is not None}
    return await _pull(request, [Position(one.topic, one.queue_id, one.offset) for one in body.queues], body, own)


@router.get("/v1/pull", summary="Pull from many queues", openapi_extra=described(QueuesArguments), **_DESCRIBED)
async def pull_named_queues(request: Request) -> Response:
    """Return messages of all queues of some topics, or of named queues; otherwise like POST."""
    arguments = read_arguments(request, QueuesArguments)
    state = state_of(request)
    caller = caller_of(request)
    for topic in arguments.topic:
        caller.require(on_topic(topic, *READING))

    def queues_of_topics() -> list[Position]:
        return [
            Position(topic, queue_id, arguments.offset)
            for topic in arguments.topic
            for queue_id in state.store.queue_ids(state.store.topic(topic))
        ]

    starts = await state.reads.read(queues_of_topics) + _named_queues(arguments)
    if not starts:
        raise RequestValidationError([{"loc": ("query", "topic"), "msg": "name a topic or a queue", "type": "missing"}])
    return await _pull(request, starts, arguments, {})


def _named_queues(arguments: QueuesArguments) -> list[Position]:
    try:
        return [parse_position(text, default_offset=arguments.offset) for text in arguments.queue]
    except ValueError as error:
        raise RequestValidationError([{"loc": ("query", "queue"), "msg": str(error), "type": "value_error"}]) from None


async def _pull(
    request: Request, starts: Sequence[Position], asked: PullLimits, own_limits: Mapping[tuple[str, int], int]
) -> Response:
    state = state_of(request)
    _require_few(starts, state.settings.query_max_pull_queues)
    for topic in {start.topic for start in starts}:
        caller_of(request).require(on_topic(topic, *READING))
    state.require_store(asked.store)
    state.answers.require_room()
    _require_distinct(starts)
    if asked.follow:
        if own_limits:
            raise ArgumentIllegalError("queues: max_messages of a queue has no meaning with follow=true")
        return await open_follower(request, starts, asked)
    form = AnswerForm.of(asked, request.headers.get("accept"))
    limits = AnswerLimits.of(
        asked,
        state.settings,
        whole_records=form.is_records,
        may_be_unchecked=may_read_store(request),
    )
    pulls = [QueuePull(state, *start, limits, max_messages=own_limits.get(start[:2])) for start in starts]

    def make(pull: QueuePull, pulled: Pulled) -> PullBody:
        def answer(pulled: Pulled) -> PullBody:
            answerer = PullAnswerer(state, pull.topic, pull.queue_id)
            return answerer.body(pulled, form)

        spans = request.app.state.pull_spans
        return (answer if spans is None else spans.around(answer, pull.topic, pull.queue_id))(pulled)

    def refuse(pull: QueuePull, error: StoreError) -> PullBody:
        return refused_part(error, pull.topic, pull.queue_id)

    many = ManyQueues(state, pulls, limits, make, refuse)
    parts = await many.run(request)
    return response_of(parts, many.looked_at, form.body_format, state)


def _require_distinct(starts: Sequence[Position]) -> None:
    named: set[tuple[str, int]] = set()
    for topic, queue_id, _ in starts:
        if (topic, queue_id) in named:
            raise ArgumentIllegalError(f"queues: {topic}:{queue_id} is named twice", argument="queues")
        named.add((topic, queue_id))


def _require_few(starts: Sequence[Position], most: int) -> None:
    if len(starts) > most:
        raise ArgumentIllegalError(
            f"queues: {len(starts)} in one request, at most {most} (TIDEMARK_QUERY_MAX_PULL_QUEUES)",
            argument="queues",
            limit=most,
        )
