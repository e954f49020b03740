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
from ..state.service_state import Facade, facade_of
from ..web.route_access import GuardedRoute, caller_of
from .append import described_body, no_arguments, read_json
from .group_offset_document import offset_json

router = APIRouter(tags=["groups"], route_class=GuardedRoute, dependencies=[Depends(no_arguments)])
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}
_PATH = "/v1/groups/{group}/topics/{topic}/queues/{queue_id}/offset"


@router.get("/v1/groups", summary="All groups", response_model=GroupsAnswer)
async def list_groups(request: Request) -> Response:
    """Return the groups that have an offset or members and that the caller may see."""
    facade, caller = facade_of(request), caller_of(request)
    offsets: dict[str, list[ConsumerOffset]] = {}
    for offset in await facade.read(lambda: list(facade.offsets.all())):
        offsets.setdefault(offset.group, []).append(offset)
    states = facade.groups.leases.states()
    summaries = []
    for group in sorted(offsets.keys() | states.keys()):
        if not caller.may(on_group(group, *KNOWN_ACTIONS)):
            continue
        topics = {offset.topic for offset in offsets.get(group, ())}
        state = states.get(group)
        summaries.append(
            {
                "group": group,
                "topics": sorted(topics if state is None else topics | state.topics),
                "queues": len(offsets.get(group, ())),
                "members": len(state.members) if state is not None else 0 if facade.offsets.is_owner else None,
            }
        )
    return json_response({"store": facade.settings.store_name, "groups": summaries})


def _members_json(facade: Facade, state: GroupState | None) -> list[dict[str, Any]] | None:
    """Return the group's members; None if another process manages the groups."""
    if state is None:
        return [] if facade.offsets.is_owner else None
    return [{**member._asdict(), "holds": [queue._asdict() for queue in member.holds]} for member in state.members]


@router.get("/v1/groups/{group}", summary="One group", response_model=GroupAnswer, responses={404: _PROBLEM})
async def describe_group(request: Request, group: GroupName) -> Response:
    """Return the group's members with the queues that each holds, and its offset and lag in each queue.

    `below_min` counts messages that retention deleted before the group read them.
    """
    facade = facade_of(request)

    def look() -> Response:
        offsets = [offset for offset in facade.offsets.all() if offset.group == group]
        state = facade.groups.leases.state(group)
        if not offsets and state is None:
            raise MessageNotFoundError(f"group {group} has no offsets and no members", group=group)
        watermark = facade.store.watermark()
        queues = [offset_json(facade, watermark, offset) for offset in offsets]
        return json_response(
            {
                "store": facade.settings.store_name,
                "group": group,
                "generation": None if state is None else state.generation,
                "strategy": None if state is None else state.strategy.value,
                "members": _members_json(facade, state),
                "lag": sum(queue["lag"] or 0 for queue in queues),
                "below_min": sum(queue["below_min"] or 0 for queue in queues),
                "queues": queues,
            }
        )

    return await facade.read(look)


def _answer(facade: Facade, offset: ConsumerOffset) -> Response:
    queue = offset_json(facade, facade.store.watermark(), offset)
    return json_response({"store": facade.settings.store_name, "group": offset.group, **queue})


@router.get(_PATH, summary="A group's offset in a queue", response_model=GroupQueueAnswer, responses={404: _PROBLEM})
async def get_offset(request: Request, group: GroupName, topic: TopicName, queue_id: QueueId) -> Response:
    """Return the group's offset in the queue; 404 if it has none."""
    facade = facade_of(request)

    def look() -> Response:
        facade.store.queue(topic, queue_id)
        offset = facade.offsets.get(group, topic, queue_id)
        if offset is None:
            raise MessageNotFoundError(
                f"group {group} has no offset in queue {queue_id} of {topic}",
                group=group,
                topic=topic,
                queue_id=queue_id,
            )
        return _answer(facade, ConsumerOffset(group, topic, queue_id, offset))

    return await facade.read(look)


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
    facade = facade_of(request)
    body = await read_json(request, OffsetBody, facade.settings.query_max_request_bytes)
    offset = ConsumerOffset(group, topic, queue_id, body.offset)
    await facade.groups.reset(group, [offset], force=body.force)
    return await facade.read(_answer, facade, offset)
