"""Topics and their queues."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from tidemark.access.right import KNOWN_ACTIONS, Action, on_topic
from tidemark.read.queue_reader import QueueReader
from tidemark.read.watermark import Watermark
from tidemark.store.originals.topics import BATCH_QUEUE, SIMPLE_QUEUE, TopicConfig

from ..pull.pull_response import json_response
from ..schema.position import position_json
from ..schema.query_arguments import Arguments, QueueId, TopicName, described, read_arguments
from ..schema.request_bodies import TopicBody
from ..schema.responses import ProblemAnswer, QueueDetailAnswer, TopicCreatedAnswer, TopicDetailAnswer, TopicsAnswer
from ..state.service_state import ServiceState, state_of
from ..web.route_access import GuardedRoute, caller_of, changing
from .append import described_body, no_arguments, read_json

router = APIRouter(tags=["topics"], route_class=GuardedRoute)
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}


def _topic_json(state: ServiceState, topic: TopicConfig) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "queue_type": BATCH_QUEUE if topic.is_batch else SIMPLE_QUEUE,
        "read_queues": topic.read_queues,
        "write_queues": topic.write_queues,
        "permission": topic.permission,
        "attributes": dict(topic.attributes),
        "queue_ids": state.store.queue_ids(topic),
    }


def _queue_json(state: ServiceState, queue: QueueReader, watermark: Watermark) -> dict[str, Any]:
    bounds = state.store.bounds(queue, watermark)
    return {"queue_id": queue.queue_id, "min_offset": bounds.min_offset, "max_offset": bounds.max_offset}


@router.post(
    "/v1/topics",
    summary="Create a topic",
    status_code=201,
    response_model=TopicCreatedAnswer,
    dependencies=[Depends(no_arguments)],
    openapi_extra=described_body(TopicBody),
    responses={
        200: {"model": TopicCreatedAnswer, "description": "The topic existed with the same settings"},
        **dict.fromkeys((403, 409, 413, 422, 503, 504, 507), _PROBLEM),
    },
)
async def create_topic(request: Request) -> Response:
    """Create a topic through the writer. The topic is durable when the request is answered.

    409 `TOPIC_EXISTS`: the topic exists with other settings. 503 `WRITER_UNREACHABLE`: the writer cannot be reached, or
    none is configured.
    """
    state = state_of(request)
    body = await read_json(request, TopicBody, state.settings.query_max_request_bytes)
    with changing(caller_of(request), on_topic(body.topic, Action.CREATE)):
        created, topic = await state.writer.create_topic(body, authorization=request.headers.get("authorization"))

    def look() -> Response:
        answer = {"store": state.settings.store_name, "created": created, **_topic_json(state, topic)}
        return json_response(answer, 201 if created else 200)

    return await state.reads.read(look)


@router.get(
    "/v1/topics",
    summary="All topics",
    response_model=TopicsAnswer,
    responses={404: _PROBLEM},
    openapi_extra=described(Arguments),
)
async def list_topics(request: Request) -> Response:
    """Return the topics that the caller may see, by name, with their queue types."""
    arguments = read_arguments(request, Arguments)
    state = state_of(request)
    state.require_store(arguments.store)
    caller = caller_of(request)

    def look() -> Response:
        topics = state.store.topics()
        return json_response(
            {
                "store": state.settings.store_name,
                "topics": [
                    _topic_json(state, topics[name])
                    for name in sorted(topics)
                    if caller.may(on_topic(name, *KNOWN_ACTIONS))
                ],
            }
        )

    return await state.reads.read(look)


@router.get(
    "/v1/topics/{topic}",
    summary="One topic",
    response_model=TopicDetailAnswer,
    responses={404: _PROBLEM},
    openapi_extra=described(Arguments),
)
async def describe_topic(request: Request, topic: TopicName) -> Response:
    """Return a topic with the bounds of its queues, and the caller's rights to it."""
    arguments = read_arguments(request, Arguments)
    state = state_of(request)
    state.require_store(arguments.store)
    caller = caller_of(request)
    allowed = [action.value for action in Action if caller.may(on_topic(topic, action))]

    def look() -> Response:
        watermark = state.store.watermark()
        return json_response(
            {
                "store": state.settings.store_name,
                **_topic_json(state, state.store.topic(topic)),
                "caller_actions": allowed,
                **position_json(watermark),
                "queues": [_queue_json(state, queue, watermark) for queue in state.store.queues(topic)],
            }
        )

    return await state.reads.read(look)


@router.get(
    "/v1/topics/{topic}/queues/{queue_id}",
    summary="One queue",
    response_model=QueueDetailAnswer,
    responses={404: _PROBLEM},
    openapi_extra=described(Arguments),
)
async def describe_queue(request: Request, topic: TopicName, queue_id: QueueId) -> Response:
    """Return the queue's minimum and maximum offset, and the watermark that determines them."""
    arguments = read_arguments(request, Arguments)
    state = state_of(request)
    state.require_store(arguments.store)

    def look() -> Response:
        watermark = state.store.watermark()
        queue = state.store.queue(topic, queue_id)
        return json_response(
            {
                "store": state.settings.store_name,
                "topic": topic,
                **_queue_json(state, queue, watermark),
                **position_json(watermark),
            }
        )

    return await state.reads.read(look)
