from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import grpc
import pytest

from services.writer.rpc.access_interceptor import CALLER, AccessInterceptor
from tests.access_files import AccessFolder
from tests.certificates import Authority
from tidemark.access.access_file import AccessFile
from tidemark.access.audit import Audit
from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import ForbiddenError, RateLimitedError, TopicNotFoundError, UnauthenticatedError
from tidemark.settings.reloaded_files import ReloadedFiles
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, GetLogInfoRequest, ReadLogRequest, SendBackRequest
from tidemark.v1.topics_pb2 import (
    AlterTopicRequest,
    CreateTopicRequest,
    DeleteTopicRequest,
    DescribeTopicRequest,
    GetRouteRequest,
    ListTopicsRequest,
)

STORE = "store-7"
LOG, TOPICS = "/tidemark.v1.CommitLogService/", "/tidemark.v1.TopicService/"


class Details(NamedTuple):
    """The details of a call, as gRPC gives them to interceptors."""

    method: str


class Context:
    """The context of a call by a client that presents a token, a certificate, or nothing."""

    def __init__(self, token: str | None = None, certificate: bytes | None = None) -> None:
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        self._certificate = certificate

    def invocation_metadata(self) -> Any:
        return self._metadata

    def auth_context(self) -> dict[str, list[bytes]]:
        return {} if self._certificate is None else {"x509_pem_cert": [self._certificate]}

    def peer(self) -> str:
        return "ipv4:10.0.0.1:54321"


class Lines(logging.Handler):
    """Keeps the audit log's (action, resource, outcome)."""

    def __init__(self) -> None:
        super().__init__()
        self.deeds: list[tuple[str, str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        deed = json.loads(record.getMessage())
        self.deeds.append((deed["action"], deed["resource"], deed["outcome"]))


class Access:
    """An interceptor over an access file, and the callers that passed it."""

    def __init__(self, folder: Path) -> None:
        self.files = AccessFolder(folder)
        self.lines = Lines()
        self.loaded = ReloadedFiles(AccessFile(self.files.path), every_ms=10_000, on_reload=lambda _: None)
        guard = Guard(self.loaded, RateLimits(), Audit(self.lines, service="writer", repeat_ms=60_000))
        self.interceptor = AccessInterceptor(guard, store_name=STORE)
        self.passed: list[str] = []

    def call(self, method: str, request: Any, context: Context, *, error: Exception | None = None) -> None:
        """Call a method that raises *error* if the interceptor lets the call pass."""
        self.loaded.look()

        async def behavior(request: Any, context: Any) -> None:
            self.passed.append(CALLER.get().name)
            if error is not None:
                raise error

        asyncio.run(_run(self.interceptor, method, grpc.unary_unary_rpc_method_handler(behavior), request, context))


async def _handler(interceptor: AccessInterceptor, method: str, handler: Any) -> Any:
    async def continuation(_: grpc.HandlerCallDetails) -> Any:
        return handler

    return await interceptor.intercept_service(continuation, cast(grpc.HandlerCallDetails, Details(method)))


async def _run(interceptor: AccessInterceptor, method: str, handler: Any, request: Any, context: Context) -> None:
    await (await _handler(interceptor, method, handler)).unary_unary(request, context)


@pytest.fixture
def access(tmp_path: Path) -> Access:
    return Access(tmp_path)


ORDERS: dict[str, Any] = {"name": "orders"}
REQUESTS: dict[str, tuple[Any, list[tuple[str, str]]]] = {  # docs/security.md: "Which right for what"
    f"{TOPICS}CreateTopic": (CreateTopicRequest(**ORDERS), [("Create", "Topic:orders")]),
    f"{TOPICS}AlterTopic": (AlterTopicRequest(**ORDERS), [("Update", "Topic:orders")]),
    f"{TOPICS}DeleteTopic": (DeleteTopicRequest(**ORDERS), [("Delete", "Topic:orders")]),
    f"{TOPICS}DescribeTopic": (
        DescribeTopicRequest(**ORDERS),
        [(action, "Topic:orders") for action in ("Pub", "Sub", "Get", "List")],
    ),
    f"{TOPICS}GetRoute": (
        GetRouteRequest(**ORDERS),
        [(action, "Topic:orders") for action in ("Pub", "Sub", "Get", "List")],
    ),
    f"{LOG}SendBack": (SendBackRequest(group="billing", topic="orders"), [("Sub", "Group:billing")]),
    f"{LOG}ReadLog": (ReadLogRequest(), [("Sub", f"Cluster:{STORE}")]),
}
ALL_ACTIONS = ["Pub", "Sub", "Create", "Update", "Delete", "Get", "List"]


@pytest.mark.parametrize("method", REQUESTS)
def test_method_needs_one_of_its_rights_and_no_other_is_enough(access: Access, method: str) -> None:
    request, sufficient = REQUESTS[method]
    resource = sufficient[0][1]
    tokens = {action: access.files.principal(action) for action in ALL_ACTIONS}
    for action in ALL_ACTIONS:
        access.files.rule(action, [action], resource)
        access.files.rule(action, ALL_ACTIONS, "Topic:other", "Group:other", "Cluster:other")
    for action in ALL_ACTIONS:
        if (action, resource) in sufficient:
            access.call(method, request, Context(tokens[action]))
        else:
            with pytest.raises(ForbiddenError):
                access.call(method, request, Context(tokens[action]))
    assert access.passed == [action for action in ALL_ACTIONS if (action, resource) in sufficient]


@pytest.mark.parametrize(
    ("method", "request_message"),
    [
        (f"{LOG}AppendBatch", AppendBatchRequest(topic="orders")),
        (f"{LOG}GetLogInfo", GetLogInfoRequest()),
        (f"{TOPICS}ListTopics", ListTopicsRequest()),
    ],
)
def test_known_caller_without_rights_reaches_the_methods_that_check_for_themselves(
    access: Access, method: str, request_message: Any
) -> None:
    access.call(method, request_message, Context(access.files.principal("newcomer")))
    assert access.passed == ["newcomer"]


@pytest.mark.parametrize("context", [Context(), Context("wrong")], ids=["no token", "a wrong token"])
@pytest.mark.parametrize("method", [f"{LOG}GetLogInfo", f"{LOG}AppendBatch", f"{TOPICS}ListTopics"])
def test_unknown_caller_reaches_no_method(access: Access, method: str, context: Context) -> None:
    with pytest.raises(UnauthenticatedError):
        access.call(method, GetLogInfoRequest(), context)
    assert access.passed == []


def test_client_certificate_identifies_its_caller(access: Access, authority: Authority) -> None:
    pair = authority.issue("orders-service")
    access.files.principal("orders-service", certificates=["CN=orders-service"])
    access.call(f"{LOG}GetLogInfo", GetLogInfoRequest(), Context(certificate=pair.cert.read_bytes()))
    assert access.passed == ["orders-service"]


def test_change_is_audited_with_its_outcome(access: Access) -> None:
    token = access.files.principal("admin")
    access.files.rule("admin", ["Delete"], "Topic:orders")
    missing = TopicNotFoundError("no such topic", topic="orders")
    outcomes = [(None, "OK"), (missing, "TOPIC_NOT_FOUND"), (RuntimeError("a bug"), "RuntimeError")]
    for error, _ in outcomes:
        with contextlib.suppress(TopicNotFoundError, RuntimeError):
            access.call(f"{TOPICS}DeleteTopic", DeleteTopicRequest(name="orders"), Context(token), error=error)
    assert access.lines.deeds == [("DeleteTopic", "Delete Topic:orders", outcome) for _, outcome in outcomes]


def test_stream_ends_when_its_right_is_taken_away(access: Access) -> None:
    """The check is made again for each response; the behavior is closed with the stream."""
    token = access.files.principal("reader")
    access.files.rule("reader", ["Sub"], f"Cluster:{STORE}")
    access.loaded.look()
    closed: list[bool] = []

    async def read_log(request: Any, context: Any) -> AsyncIterator[int]:
        try:
            for number in range(3):
                yield number
        finally:
            closed.append(True)

    async def run() -> None:
        handler = await _handler(access.interceptor, f"{LOG}ReadLog", grpc.unary_stream_rpc_method_handler(read_log))
        responses = handler.unary_stream(ReadLogRequest(), Context(token))
        assert await anext(responses) == 0
        access.files.rule("reader", ["Sub"], f"Cluster:{STORE}", decision="Deny")
        access.loaded.look()
        with pytest.raises(ForbiddenError):
            await anext(responses)
        assert closed == [True]

    asyncio.run(run())


def test_stream_of_a_forgotten_principal_ends(access: Access) -> None:
    """A stream that needs no particular right still needs a known caller."""
    token = access.files.principal("watcher")
    access.loaded.look()

    async def watch(request: Any, context: Any) -> AsyncIterator[int]:
        for number in range(3):
            yield number

    async def run() -> None:
        handler = await _handler(
            access.interceptor, f"{LOG}WatchCommitted", grpc.unary_stream_rpc_method_handler(watch)
        )
        responses = handler.unary_stream(None, Context(token))
        assert await anext(responses) == 0
        access.files.forget("watcher")
        access.loaded.look()
        with pytest.raises(UnauthenticatedError):
            await anext(responses)

    asyncio.run(run())


def test_health_check_needs_no_caller(access: Access) -> None:
    handler: Any = grpc.unary_unary_rpc_method_handler(lambda request, context: None)
    assert asyncio.run(_handler(access.interceptor, "/grpc.health.v1.Health/Check", handler)) is handler


def test_rate_limit_applies_per_address_without_an_access_file() -> None:
    interceptor = AccessInterceptor(Guard(None, RateLimits(requests_per_s=1), None), store_name=STORE)
    callers: list[str] = []

    async def behavior(request: Any, context: Any) -> None:
        callers.append(CALLER.get().name)

    def call_often() -> None:
        handler: Any = grpc.unary_unary_rpc_method_handler(behavior)
        for _ in range(100):
            asyncio.run(_run(interceptor, f"{LOG}GetLogInfo", handler, GetLogInfoRequest(), Context("ignored")))

    with pytest.raises(RateLimitedError):
        call_often()
    assert callers, "the first calls pass"
    assert set(callers) == {""}
