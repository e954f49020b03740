"""Messages that a group sends back for another try."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from tidemark.access.right import Action, on_topic
from tidemark.errors import ArgumentIllegalError

from ..pull.pull_response import json_response
from ..schema.query_arguments import GroupName
from ..schema.request_bodies import RetryBody
from ..schema.responses import ProblemAnswer
from ..schema.retry_responses import RetryAnswer
from ..state.service_state import state_of
from ..state.writer_client import SentBackMessage
from ..web.route_access import GuardedRoute, caller_of
from .append import described_body, no_arguments, read_json
from .retries import find_originals, send_back

router = APIRouter(tags=["groups"], route_class=GuardedRoute)
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}


@router.post(
    "/v1/groups/{group}/retry",
    summary="Send messages back for another try",
    response_model=RetryAnswer,
    dependencies=[Depends(no_arguments)],
    openapi_extra=described_body(RetryBody),
    responses=dict.fromkeys((403, 413, 422, 503, 504), _PROBLEM),
)
async def retry(request: Request, group: GroupName) -> Response:
    """Store each message again in `%RETRY%group`, with a delay, or in `%DLQ%group` after too many tries.

    These are the rules of RocketMQ's consumerSendMsgBack. Each message has a result of its own: `sent_back`, or the
    `problem` that prevented it. A repeated request stores no second copy.
    """
    state = state_of(request)
    body = await read_json(request, RetryBody, state.settings.query_max_request_bytes)
    most = state.settings.query_max_retry_messages
    if len(body.messages) > most:
        raise ArgumentIllegalError(
            f"messages: {len(body.messages)} in one request, at most {most} (TIDEMARK_QUERY_MAX_RETRY_MESSAGES)",
            argument="messages",
            limit=most,
        )
    caller = caller_of(request)
    for topic in {message.topic for message in body.messages if message.topic is not None}:
        caller.require(on_topic(topic, Action.SUB))
    found = await state.reads.read(find_originals, state.store, body.messages)
    for topic in {one.topic for one in found if isinstance(one, SentBackMessage)}:
        caller.require(on_topic(topic, Action.SUB))
    results = await send_back(state.writer, group, body, found, authorization=request.headers.get("authorization"))
    return json_response({"store": state.settings.store_name, "group": group, "results": results})
