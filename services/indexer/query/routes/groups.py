"""Consumer groups: their members, and their offset in each queue."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from tidemark.access.right import KNOWN_ACTIONS, on_group
from tidemark.errors import MessageNotFoundError

from ..groups.consumer_offsets import ConsumerOffset
from ..groups.group_membership import GroupState
from ..pull.pull_response import json_response
from ..schema.group_responses import GroupAnswer, GroupQueueAnswer, GroupsAnswer
from ..schema.query_arguments import GroupName, QueueId, TopicName
from ..schema.request_bodies import OffsetBody
from ..schema.responses import ProblemAnswer
from ..state.service_state import ServiceState, state_of
from ..web.route_access import GuardedRoute, caller_of
from .append import described_body, no_arguments, read_json
from .group_offset_document import offset_json

router = APIRouter(tags=["groups"], route_class=GuardedRoute, dependencies=[Depends(no_arguments)])
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}
_PATH = "/v1/groups/{group}/topics/{topic}/queues/{queue_id}/offset"


@router.get("/v1/groups", summary="All groups", response_model=GroupsAnswer)
async def list_groups(request: Request) -> Response:
    """Return the groups that have an offset or members and that the caller may see."""
    state, caller = state_of(request), caller_of(request)
    offsets: dict[str, list[ConsumerOffset]] = {}
    for offset in await state.reads.read(lambda: list(state.offsets.all())):
        offsets.setdefault(offset.group, []).append(offset)
    states = state.groups.leases.states()
    subscribed = state.groups.clients.topics()
    summaries = []
    for group in sorted(offsets.keys() | states.keys() | subscribed.keys()):
        if not caller.may(on_group(group, *KNOWN_ACTIONS)):
            continue
        topics = {offset.topic for offset in offsets.get(group, ())}.union(subscribed.get(group, ()))
        group_state = states.get(group)
        members = _members_json(state, group_state)
        summaries.append(
            {
                "group": group,
                "topics": sorted(topics if group_state is None else topics | group_state.topics),
                "queues": len(offsets.get(group, ())),
                "members": None if members is None else len(members) + len(state.groups.clients.clients(group)),
            }
        )
    return json_response({"store": state.settings.store_name, "groups": summaries})


def _members_json(state: ServiceState, group_state: GroupState | None) -> list[dict[str, Any]] | None:
    """Return the group's members; None if another process manages the groups."""
    if group_state is None:
        return [] if state.offsets.is_owner else None
    return [
        {**member._asdict(), "holds": [queue._asdict() for queue in member.holds]} for member in group_state.members
    ]


@router.get("/v1/groups/{group}", summary="One group", response_model=GroupAnswer, responses={404: _PROBLEM})
async def describe_group(request: Request, group: GroupName) -> Response:
    """Return the group's members with the queues that each holds, and its offset and lag in each queue.

    `clients` are members that are RocketMQ's clients.

    `below_min` counts messages that retention deleted before the group read them.
    """
    state = state_of(request)
    clients = state.groups.clients.clients(group)

    def look() -> Response:
        offsets = [offset for offset in state.offsets.all() if offset.group == group]
        group_state = state.groups.leases.state(group)
        if not offsets and not clients and group_state is None:
            raise MessageNotFoundError(f"group {group} has no offsets and no members", group=group)
        watermark = state.store.watermark()
        queues = [offset_json(state, watermark, offset) for offset in offsets]
        return json_response(
            {
                "store": state.settings.store_name,
                "group": group,
                "generation": None if group_state is None else group_state.generation,
                "strategy": None if group_state is None else group_state.strategy.value,
                "members": _members_json(state, group_state),
                "clients": [client._asdict() for client in clients] if state.offsets.is_owner else None,
                "lag": sum(queue["lag"] or 0 for queue in queues),
                "below_min": sum(queue["below_min"] or 0 for queue in queues),
                "queues": queues,
            }
        )

    return await state.reads.read(look)


def _answer(state: ServiceState, offset: ConsumerOffset) -> Response:
    queue = offset_json(state, state.store.watermark(), offset)
    return json_response({"store": state.settings.store_name, "group": offset.group, **queue})


@router.get(_PATH, summary="A group's offset in a queue", response_model=GroupQueueAnswer, responses={404: _PROBLEM})
async def get_offset(request: Request, group: GroupName, topic: TopicName, queue_id: QueueId) -> Response:
    """Return the group's offset in the queue; 404 if it has none."""
    state = state_of(request)

    def look() -> Response:
        state.store.queue(topic, queue_id)
        offset = state.offsets.get(group, topic, queue_id)
        if offset is None:
            raise MessageNotFoundError(
                f"group {group} has no offset in queue {queue_id} of {topic}",
                group=group,
                topic=topic,
                queue_id=queue_id,
            )
        return _answer(state, ConsumerOffset(group, topic, queue_id, offset))

    return await state.reads.read(look)


@router.put(
    _PATH,
    summary="Set a group's offset in a queue",
    response_model=GroupQueueAnswer,
    openapi_extra=described_body(OffsetBody),
    responses=dict.fromkeys((404, 409, 422, 503, 507), _PROBLEM),
)
async def put_offset(request: Request, group: GroupName, topic: TopicName, queue_id: QueueId) -> Response:
    """Set the group's offset. The offset is durable when the request is answered.

    409 `GROUP_ACTIVE`: the group has live members, and only they set its offsets. 503 `STORE_LOCKED`: another query
    process owns the offsets. 507 `DISK_FULL`: the previous offset is unchanged. 422: the offset is above the queue's
    end; set `force` to allow that.
    """
    state = state_of(request)
    body = await read_json(request, OffsetBody, state.settings.query_max_request_bytes)
    offset = ConsumerOffset(group, topic, queue_id, body.offset)
    await state.groups.reset(group, [offset], force=body.force)
    return await state.reads.read(_answer, state, offset)
