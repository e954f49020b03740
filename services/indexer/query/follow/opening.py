"""Opens a followed answer: checks the request, and reads each queue once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response

from tidemark.access.right import READING, on_topic
from tidemark.errors import ArgumentIllegalError

from ..pull.answer_form import accepted_of
from ..schema.query_arguments import PullLimits
from ..state.service_state import ServiceState, state_of
from ..web.route_access import caller_of
from .encodings import FollowFormat
from .follow_response import FollowResponse
from .follower import Follower, FollowOptions
from .positions import Position, parse_positions

_BY_RANGE = {
    **{body_format.value: body_format for body_format in FollowFormat},
    "*/*": FollowFormat.NDJSON,
    "application/*": FollowFormat.NDJSON,
    "application/ndjson": FollowFormat.NDJSON,
    "text/*": FollowFormat.EVENTS,
}
LAST_EVENT_ID = "last-event-id"


async def open_follower(request: Request, starts: Sequence[Position], asked: PullLimits) -> Response:
    """Return the answer to a request with follow=true. The header Last-Event-ID replaces the offsets of *starts*.

    Raises:
        StoreError: a queue cannot be read from its offset, or the request exceeds a limit.
        HTTPException, RequestValidationError: the request is illegal.
    """
    state = state_of(request)
    most = state.settings.query_max_follow_queues
    if len(starts) > most:
        raise ArgumentIllegalError(
            f"{len(starts)} queues in one followed answer: at most {most} (TIDEMARK_QUERY_MAX_FOLLOW_QUEUES)",
            limit=most,
        )
    options = _options(request, asked, state)
    follower = Follower(
        state, _resumed(request, starts), options, _checks_of(request, starts), request.app.state.pull_spans
    )
    await follower.open()
    client = "" if request.client is None else request.client.host
    return FollowResponse(follower, options.body_format.value, state.watcher.followed(client))


def _options(request: Request, asked: PullLimits, state: ServiceState) -> FollowOptions:
    settings = state.settings
    return FollowOptions(
        accepted_of(request.headers.get("accept"), _BY_RANGE),
        asked.body_encoding,
        tuple(asked.tag),
        asked.max_messages,
        min(asked.max_seconds or settings.query_max_follow_s, settings.query_max_follow_s),
        min(asked.heartbeat_ms or settings.query_heartbeat_ms, settings.query_heartbeat_ms) / 1000,
    )


def _resumed(request: Request, starts: Sequence[Position]) -> Sequence[Position]:
    """Return the positions of the request's Last-Event-ID; without one, *starts*."""
    last = request.headers.get(LAST_EVENT_ID)
    if not last:
        return starts
    try:
        positions = parse_positions(last)
    except ValueError as error:
        raise _illegal(str(error)) from None
    if [one[:2] for one in positions] != [one[:2] for one in starts]:
        queues = ", ".join(f"{one.topic}:{one.queue_id}" for one in starts)
        raise _illegal(f"it names other queues than the request, which reads {queues}")
    return positions


def _illegal(message: str) -> RequestValidationError:
    return RequestValidationError([{"loc": ("header", "Last-Event-ID"), "msg": message, "type": "value_error"}])


def _checks_of(request: Request, starts: Sequence[Position]) -> Callable[[], None]:
    """Return a function that raises if the caller may not read the topics any more."""
    caller = caller_of(request)
    if caller.is_open:
        return _allow
    rights = [on_topic(topic, *READING) for topic in {start.topic for start in starts}]

    def check() -> None:
        for right in rights:
            if not caller.may(right):
                caller.require(right)

    return check


def _allow() -> None:
    """Check nothing: every caller may do everything."""
