"""Members of consumer groups: join, heartbeat, leave, and commits of offsets in several queues."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from tidemark.access.right import Action, on_topic

from ..groups.consumer_groups import MemberOffsets
from ..pull.pull_response import json_response
from ..schema.group_responses import GroupOffsetsAnswer, LeaseAnswer
from ..schema.query_arguments import GroupName, LeaveArguments, MemberId, described, read_arguments
from ..schema.request_bodies import HeartbeatBody, JoinBody, OffsetsBody
from ..schema.responses import ProblemAnswer
from ..state.service_state import ServiceState, state_of
from ..web.route_access import GuardedRoute, caller_of
from .append import described_body, no_arguments, read_json
from .group_offset_document import offset_json

router = APIRouter(tags=["groups"], route_class=GuardedRoute)
_STRICT = [Depends(no_arguments)]
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}
_MEMBER = "/v1/groups/{group}/members/{member_id}"
_HEARTBEATS_A_SESSION = 3


def _lease_response(state: ServiceState, group: str, told: MemberOffsets, status: int) -> Response:
    lease = told.lease
    content = {
        "store": state.settings.store_name,
        "group": group,
        "member_id": lease.member_id,
        "generation": lease.generation,
        "session_timeout_ms": lease.session_timeout_ms,
        "heartbeat_interval_ms": lease.session_timeout_ms // _HEARTBEATS_A_SESSION,
        "members": lease.members,
        "assigned": [
            {"topic": queue.topic, "queue_id": queue.queue_id, "offset": offset}
            for queue, offset in zip(lease.assigned, told.offsets, strict=True)
        ],
        "unknown_topics": lease.unknown_topics,
    }
    return json_response(content, status)


@router.post(
    "/v1/groups/{group}/members",
    summary="Join a group",
    status_code=201,
    response_model=LeaseAnswer,
    dependencies=_STRICT,
    openapi_extra=described_body(JoinBody),
    responses=dict.fromkeys((409, 413, 422, 429, 503), _PROBLEM),
)
async def join(request: Request, group: GroupName) -> Response:
    """Join the group as a member and return the queues to consume. Each heartbeat may assign more.

    409 `GROUP_STRATEGY_CONFLICT`: the group's members use another strategy. 503 `STORE_LOCKED`: another query process
    manages the groups.
    """
    state = state_of(request)
    body = await read_json(request, JoinBody, state.settings.query_max_request_bytes)
    for topic in body.topics:
        caller_of(request).require(on_topic(topic, Action.SUB))
    return _lease_response(state, group, await state.groups.join(group, body), 201)


@router.put(
    _MEMBER,
    summary="Heartbeat",
    response_model=LeaseAnswer,
    dependencies=_STRICT,
    openapi_extra=described_body(HeartbeatBody),
    responses=dict.fromkeys((409, 413, 422, 503), _PROBLEM),
)
async def heartbeat(request: Request, group: GroupName, member_id: MemberId) -> Response:
    """Renew the session, release queues, and return the assigned queues.

    If a held queue is missing in `assigned`, stop consuming it, commit its offset, and leave it out of the next
    `holds`; the queue is then given to its new owner. 409 `MEMBER_FENCED`: the caller is no longer a member and must
    join again.
    """
    state = state_of(request)
    body = await read_json(request, HeartbeatBody, state.settings.query_max_request_bytes)
    return _lease_response(state, group, await state.groups.heartbeat(group, member_id, body), 200)


@router.delete(
    _MEMBER,
    summary="Leave a group",
    status_code=204,
    openapi_extra=described(LeaveArguments),
    responses=dict.fromkeys((422, 503), _PROBLEM),
)
async def leave(request: Request, group: GroupName, member_id: MemberId) -> Response:
    """Remove the member and release its queues at once. 204 also for an unknown member."""
    arguments = read_arguments(request, LeaveArguments)
    await state_of(request).groups.leave(group, member_id, arguments.generation)
    return Response(status_code=204, headers={"Cache-Control": "no-store"})


@router.put(
    "/v1/groups/{group}/offsets",
    summary="Set a group's offsets in several queues",
    response_model=GroupOffsetsAnswer,
    dependencies=_STRICT,
    openapi_extra=described_body(OffsetsBody),
    responses=dict.fromkeys((404, 409, 413, 422, 503, 507), _PROBLEM),
)
async def put_offsets(request: Request, group: GroupName) -> Response:
    """Set all offsets or none. They are durable when the request is answered.

    409 `GENERATION_STALE`: the member does not hold every queue, or `generation` is not the one of its last lease. 409
    `GROUP_ACTIVE`: the request names no member, but the group has live members.
    """
    state = state_of(request)
    body = await read_json(request, OffsetsBody, state.settings.query_max_request_bytes)
    offsets = await state.groups.commit(group, body)

    def answer() -> Response:
        watermark = state.store.watermark()
        return json_response(
            {
                "store": state.settings.store_name,
                "group": group,
                "generation": state.groups.leases.generation(group),
                "offsets": [offset_json(state, watermark, offset) for offset in offsets],
            }
        )

    return await state.reads.read(answer)
