"""Pulls from one queue, and queue offsets by store time."""

from __future__ import annotations

import functools
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidemark.read.lookup.offset_by_time import TimeAnswer, offset_by_time, offset_by_time_as_broker

from ..follow.encodings import FollowFormat
from ..follow.opening import open_follower
from ..follow.positions import Position
from ..pull.answer_form import AnswerForm, BodyFormat
from ..pull.pull_response import PullAnswerer, json_response
from ..pull.pulled import AnswerLimits, Pulled
from ..pull.queue_pull import QueuePull
from ..pull.single_pull import Puller
from ..schema.position import position_json
from ..schema.query_arguments import (
    PullArguments,
    QueueId,
    Semantics,
    TimeArguments,
    TopicName,
    described,
    read_arguments,
)
from ..schema.responses import OffsetByTimeAnswer, ProblemAnswer, PullAnswer
from ..state.service_state import state_of
from ..web.plain_route import PlainRoute
from ..web.route_access import may_read_store

router = APIRouter(tags=["messages"], route_class=PlainRoute)
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}
_OTHER_FORMATS = {
    **{body_format.value: _BINARY for body_format in BodyFormat if body_format is not BodyFormat.JSON},
    FollowFormat.EVENTS.value: {"schema": {"type": "string"}},
}


@router.get(
    "/v1/topics/{topic}/queues/{queue_id}/messages",
    summary="Pull",
    response_class=Response,
    responses={
        200: {
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PullAnswer"}}, **_OTHER_FORMATS},
            "model": PullAnswer,
            "description": "The Accept header selects the format. Other formats than JSON have the pull's facts in "
            "Tidemark-* headers; Arrow also has them in its schema's metadata. With follow=true the formats are "
            "NDJSON, events, Arrow and records, and there are no such headers.",
        },
        404: _PROBLEM,
        406: _PROBLEM,
        410: _PROBLEM,
        416: _PROBLEM,
        422: _PROBLEM,
        429: _PROBLEM,
    },
    openapi_extra=described(PullArguments),
)
async def pull_messages(request: Request, topic: TopicName, queue_id: QueueId) -> Response:
    """Return messages from a queue offset on.

    At the queue's end the answer is 200 with the same cursor; with `wait_ms` the request waits for messages first.
    410: the offset is below the queue's minimum. 416: the offset is above everything committed. Messages above the
    watermark are not returned.

    With `follow=true` the answer stays open and gets each message as it becomes visible. The header `Last-Event-ID`
    replaces `offset`.
    """
    arguments = read_arguments(request, PullArguments)
    state = state_of(request)
    state.require_store(arguments.store)
    state.answers.require_room()
    if arguments.follow:
        return await open_follower(request, [Position(topic, queue_id, arguments.offset)], arguments)
    form = AnswerForm.of(arguments, request.headers.get("accept"))
    answerer = PullAnswerer(state, topic, queue_id)

    def answer(pulled: Pulled) -> Response:
        return answerer.response(pulled, form)

    spans = request.app.state.pull_spans
    telling = answer if spans is None else spans.around(answer, topic, queue_id)
    limits = AnswerLimits.of(
        arguments,
        state.settings,
        whole_records=form.is_records,
        as_broker=arguments.semantics is Semantics.ROCKETMQ,
        as_columns=form.is_plain_arrow,
        may_be_unchecked=may_read_store(request),
    )
    wait = functools.partial(state.watcher.wait_for_request, request)
    return await Puller(state, QueuePull(state, topic, queue_id, arguments.offset, limits), wait).run(telling)


@router.get(
    "/v1/topics/{topic}/queues/{queue_id}/offset",
    summary="Queue offset by store time",
    response_model=OffsetByTimeAnswer,
    responses={404: _PROBLEM, 422: _PROBLEM},
    openapi_extra=described(TimeArguments),
)
async def offset_of_time(request: Request, topic: TopicName, queue_id: QueueId) -> Response:
    """Return the first message stored at or after a time (`lower`), or the last one at or before it (`upper`)."""
    arguments = read_arguments(request, TimeArguments)
    state = state_of(request)
    state.require_store(arguments.store)

    def find() -> Response:
        queue = state.store.queue(topic, queue_id)
        watermark = state.store.watermark()
        bounds = state.store.bounds(queue, watermark)
        log = state.store.log
        if arguments.semantics is Semantics.ROCKETMQ:
            offset = offset_by_time_as_broker(queue, log, bounds, arguments.time, arguments.boundary)
            answer = TimeAnswer(offset, None)
        else:
            answer = offset_by_time(queue, log, bounds, arguments.time, arguments.boundary)
        return json_response(
            {
                "store": state.settings.store_name,
                "topic": topic,
                "queue_id": queue_id,
                "time_ms": arguments.time,
                "boundary": arguments.boundary.value,
                "offset": answer.offset,
                "store_timestamp_ms": answer.store_timestamp,
                "min_offset": bounds.min_offset,
                "max_offset": bounds.max_offset,
                **position_json(watermark),
            }
        )

    return await state.reads.read(find)
