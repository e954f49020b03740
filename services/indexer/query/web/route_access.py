"""The right that each route requires of its caller: one table, checked before the endpoint runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from tidemark.access.guard import Caller, Guard
from tidemark.access.identity import Presented
from tidemark.access.right import KNOWN_ACTIONS, READING, Action, Right, on_group, on_store, on_topic
from tidemark.errors import ForbiddenError, StoreError
from tidemark.status import status_of

from ..schema.responses import ProblemAnswer

_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}
_REFUSALS: Mapping[int | str, dict[str, Any]] = dict.fromkeys((401, 403, 429), _PROBLEM)
_CALLER = "tidemark.caller"
_FOREIGN = ("cross-site", "same-site")  # values of Sec-Fetch-Site; same-site includes other ports and subdomains
_NOWHERE = "127.0.0.1"  # address of callers on a Unix socket


class Needs(NamedTuple):
    """Requirement of a route.

    right: makes the right from the path's parameters and the store's name; None: any admitted caller may use the route,
    or its endpoint checks rights itself.
    """

    right: Callable[[Mapping[str, str], str], Right] | None
    is_open: bool = False  # no caller is refused


def _topic(*actions: Action) -> Needs:
    return Needs(lambda path, _: on_topic(path["topic"], *actions))


def _group(*actions: Action) -> Needs:
    return Needs(lambda path, _: on_group(path["group"], *actions))


def _store(*actions: Action) -> Needs:
    return Needs(lambda _, store: on_store(store, *actions))


_OPEN = Needs(None, is_open=True)  # the answer contains no data of the store
_KNOWN = Needs(None)
_EACH = Needs(None)  # the endpoint omits items that the caller may not see, or checks rights when it knows the topics
_NEEDS: Mapping[tuple[str, str], Needs] = {
    ("GET", "/healthz"): _OPEN,
    ("GET", "/readyz"): _OPEN,
    ("GET", "/metrics"): _store(Action.GET),
    ("GET", "/v1/status"): _store(Action.GET),
    ("GET", "/v1/corruptions"): _store(Action.GET),
    ("GET", "/v1/watermark"): _KNOWN,
    ("GET", "/v1/log"): _store(Action.GET),
    ("GET", "/v1/log/records"): _store(Action.SUB),
    ("GET", "/v1/log/bytes"): _store(Action.SUB),
    ("GET", "/v1/topics"): _EACH,
    ("POST", "/v1/topics"): _EACH,
    ("GET", "/v1/topics/{topic}"): _topic(*KNOWN_ACTIONS),
    ("GET", "/v1/topics/{topic}/queues/{queue_id}"): _topic(*KNOWN_ACTIONS),
    ("GET", "/v1/topics/{topic}/queues/{queue_id}/messages"): _topic(*READING),
    ("GET", "/v1/topics/{topic}/queues/{queue_id}/offset"): _topic(*READING),
    ("GET", "/v1/topics/{topic}/messages"): _topic(*READING),
    ("POST", "/v1/topics/{topic}/messages"): _topic(Action.PUB),
    ("POST", "/v1/topics/{topic}/messages:lookup"): _topic(*READING),
    ("GET", "/v1/pull"): _EACH,
    ("POST", "/v1/pull"): _EACH,
    ("GET", "/v1/messages/at/{physical_offset}"): _EACH,
    ("GET", "/v1/messages/{offset_msg_id}"): _EACH,
    ("GET", "/v1/groups"): _EACH,
    ("GET", "/v1/groups/{group}"): _group(*READING),
    ("POST", "/v1/groups/{group}/members"): _group(Action.SUB),  # the endpoint also requires Sub on each topic
    ("PUT", "/v1/groups/{group}/members/{member_id}"): _group(Action.SUB),
    ("DELETE", "/v1/groups/{group}/members/{member_id}"): _group(Action.SUB),
    ("POST", "/v1/groups/{group}/retry"): _group(Action.SUB),  # the endpoint also requires Sub on each message's topic
    ("PUT", "/v1/groups/{group}/offsets"): _group(Action.SUB, Action.UPDATE),
    ("GET", "/v1/groups/{group}/topics/{topic}/queues/{queue_id}/offset"): _group(*READING),
    ("PUT", "/v1/groups/{group}/topics/{topic}/queues/{queue_id}/offset"): _group(Action.SUB, Action.UPDATE),
}


class GuardedRoute(APIRoute):
    """A route that runs its endpoint only for callers with the right in the table.

    Raises:
        KeyError: the table has no such route.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **described: Any) -> None:
        described["responses"] = {**_REFUSALS, **(described.get("responses") or {})}
        super().__init__(path, endpoint, **described)
        self._method = next(iter(self.methods or ()))
        self._needs = _NEEDS[self._method, path]
        self._action = f"{self._method} {path}"

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the caller's right, then handle the request as starlette's Route does.

        Raises:
            UnauthenticatedError, ForbiddenError, RateLimitedError: the caller is refused.
        """
        if self._needs.is_open or scope["method"] != self._method:
            await super().handle(scope, receive, send)
            return
        if self._method != "GET":
            _require_no_foreign_page(Headers(scope=scope))
        state = scope["app"].state.service
        if state.guard.is_open:
            scope[_CALLER] = state.guard.anyone
            await self._handle_allowed(scope, receive, send)
            return
        caller = scope[_CALLER] = _admit(state.guard, scope, self._action)
        right = (
            None if self._needs.right is None else self._needs.right(scope["path_params"], state.settings.store_name)
        )
        if right is not None:
            caller.require(right)
            if right.changes:
                send = _audited(send, caller, right)
        await self._handle_allowed(scope, receive, send)

    async def _handle_allowed(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().handle(scope, receive, send)


def _require_no_foreign_page(headers: Headers) -> None:
    """Raise ForbiddenError for a request that a page of another site makes through a user's browser.

    Browsers report this in Fetch Metadata headers, which no script can change. Other clients do not send them.
    """
    if headers.get("sec-fetch-site") in _FOREIGN:
        raise ForbiddenError("a page of another site must not make changes", origin=headers.get("origin"))


def caller_of(request: Request) -> Caller:
    """Return the caller that was admitted for *request*."""
    caller: Caller = request.scope[_CALLER]
    return caller


def may_read_store(request: Request) -> bool:
    """Return True if the caller may read the whole log, and so also any record that a damaged unit points at."""
    caller = caller_of(request)
    return caller.is_open or caller.may(on_store(request.app.state.service.settings.store_name, Action.GET))


@contextlib.contextmanager
def changing(caller: Caller, right: Right) -> Iterator[None]:
    """Check a right that only the endpoint can determine, and write the outcome of the change to the audit log.

    Raises:
        ForbiddenError: the caller does not have the right.
    """
    caller.require(right)
    outcome = "OK"
    try:
        yield
    except StoreError as error:
        outcome = status_of(error).reason
        raise
    finally:
        caller.note(str(right), outcome, changes=True)


def _admit(guard: Guard, scope: Scope, action: str) -> Caller:
    presented = Presented(None, None) if guard.access is None else _presented(scope)
    client = scope.get("client")
    return guard.admit(presented, address=client[0] if client else _NOWHERE, action=action)


def _presented(scope: Scope) -> Presented:
    tls = scope.get("extensions", {}).get("tls", {})
    return Presented.of(Headers(scope=scope).get("authorization"), tls.get("client_cert_der"))


def _audited(send: Send, caller: Caller, right: Right) -> Send:
    """Return a *send* that writes the status of the answer to the audit log."""

    async def send_and_audit(message: Message) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            caller.note(str(right), "OK" if status < 400 else f"HTTP {status}", changes=True)
        await send(message)

    return send_and_audit
