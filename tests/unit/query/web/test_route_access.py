from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.responses import Response

from services.indexer.query.web.route_access import GuardedRoute, changing
from tests.access_files import AccessFolder
from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp
from tidemark.access.access_file import AccessFile
from tidemark.access.audit import Audit
from tidemark.access.guard import Guard
from tidemark.access.identity import Presented
from tidemark.access.rate_limits import RateLimits
from tidemark.access.right import Action, on_topic
from tidemark.errors import TopicExistsError
from tidemark.settings.reloaded_files import ReloadedFiles

MESSAGES = "/v1/topics/orders/queues/0/messages"
OFFSET = "/v1/groups/g/topics/orders/queues/0/offset"


class AuditLog(logging.Handler):
    """Keeps the lines of the audit log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(record.getMessage()))

    def outcomes(self) -> list[tuple[str, str]]:
        """Return (principal, outcome) of each line."""
        return [(line["principal"], line["outcome"]) for line in self.lines]


def guard_of(files: AccessFolder, audit: AuditLog) -> Guard:
    """Return a guard by the access file as it is now."""
    access = ReloadedFiles(AccessFile(files.path), every_ms=10_000, on_reload=lambda _: None)
    return Guard(access, RateLimits(), Audit(audit, service="query", repeat_ms=60_000))


@pytest.fixture
def files(tmp_path: Path) -> AccessFolder:
    return AccessFolder(tmp_path)


@pytest.fixture
def served(tmp_path: Path, files: AccessFolder) -> Iterator[Callable[[], tuple[ServedApp, AuditLog]]]:
    """Serve a store to the principals of *files*; they are read now."""
    built = BuiltStore(tmp_path / "store")
    built.topic("orders")
    built.append("orders")
    built.publish()
    opened: list[ServedApp] = []

    def serve() -> tuple[ServedApp, AuditLog]:
        audit = AuditLog()
        opened.append(ServedApp(built, guard=guard_of(files, audit)))
        return opened[0], audit

    yield serve
    for service in opened:
        service.__exit__(None, None, None)


Serve = Callable[[], tuple[ServedApp, AuditLog]]


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


async def nothing() -> Response:
    """Answer nothing."""
    return Response()


def test_a_route_without_an_access_rule_is_refused() -> None:
    router = APIRouter(route_class=GuardedRoute)
    with pytest.raises(KeyError):
        router.add_api_route("/v1/forgotten", nothing)


def test_every_route_of_the_api_is_guarded(served: Serve) -> None:
    service, _ = served()
    routes = [route for route in service.app.routes if isinstance(route, APIRoute)]
    assert len(routes) > 20
    assert all(isinstance(route, GuardedRoute) for route in routes)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_open_to_every_caller(served: Serve, path: str) -> None:
    service, _ = served()
    assert service.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/v1/topics", "/v1/watermark", "/v1/status", "/metrics", MESSAGES])
def test_a_caller_without_a_token_is_401(served: Serve, path: str) -> None:
    service, audit = served()
    answer = service.get(path)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert audit.outcomes() == [("", "UNAUTHENTICATED")]


@pytest.mark.parametrize(
    ("actions", "resource", "path", "allowed"),
    [
        (["Sub"], "Topic:orders", MESSAGES, True),
        (["Pub"], "Topic:orders", MESSAGES, False),
        (["Sub"], "Topic:other", MESSAGES, False),
        (["Pub"], "Topic:orders", "/v1/topics/orders", True),
        (["Sub"], "Topic:orders", "/v1/status", False),
        (["Sub"], "Topic:orders", "/v1/watermark", True),
        (["Sub"], "Topic:orders", "/v1/log/bytes?from=0", False),
    ],
)
def test_a_caller_needs_the_right_of_the_route(
    served: Serve, files: AccessFolder, actions: list[str], resource: str, path: str, allowed: bool
) -> None:
    token = files.principal("alice")
    files.rule("alice", actions, resource)
    service, _ = served()
    assert service.get(path, headers=bearer(token)).status_code == (200 if allowed else 403)


def test_a_topic_list_omits_topics_that_the_caller_may_not_read(served: Serve, files: AccessFolder) -> None:
    token = files.principal("alice")
    files.rule("alice", ["Sub"], "Topic:other")
    service, _ = served()
    assert service.get("/v1/topics", headers=bearer(token)).json()["topics"] == []


@pytest.mark.parametrize(("offset", "outcome"), [(0, "OK"), (99, "HTTP 422")])
def test_a_change_is_audited_with_its_outcome(served: Serve, files: AccessFolder, offset: int, outcome: str) -> None:
    token = files.principal("alice")
    files.rule("alice", ["Sub", "Update"], "Group:g")
    service, audit = served()
    service.ask("PUT", OFFSET, json={"offset": offset}, headers=bearer(token))
    assert audit.outcomes() == [("alice", outcome)]


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_a_cross_site_request_changes_nothing(served: Serve, files: AccessFolder, site: str, status: int) -> None:
    """The browser would add the user's certificate without the user's knowledge."""
    token = files.principal("alice")
    files.rule("alice", ["Sub", "Update"], "Group:g", "Topic:orders")
    service, _ = served()
    headers = bearer(token, **{"Sec-Fetch-Site": site})
    assert service.ask("PUT", OFFSET, json={"offset": 0}, headers=headers).status_code == status
    assert service.get(MESSAGES, headers=headers).status_code == 200, "reading changes nothing"


@pytest.mark.parametrize(("failure", "outcome"), [(None, "OK"), (TopicExistsError("there"), "TOPIC_EXISTS")])
def test_a_change_within_an_endpoint_is_audited_too(
    files: AccessFolder, failure: TopicExistsError | None, outcome: str
) -> None:
    token = files.principal("alice")
    files.rule("alice", ["Create"], "Topic:bills")
    audit = AuditLog()
    caller = guard_of(files, audit).admit(Presented(token, None), address="10.0.0.1", action="POST /v1/topics")
    with contextlib.suppress(TopicExistsError), changing(caller, on_topic("bills", Action.CREATE)):
        if failure is not None:
            raise failure
    assert audit.outcomes() == [("alice", outcome)]
