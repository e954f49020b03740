"""Rights at the writer, over real gRPC."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.access_files import AccessFolder, Issuer
from tests.certificates import Authority
from tests.health_checks import is_healthy
from tests.integration.writer.harness import RunningWriter, stored_records
from tidemark.client import Credentials, Producer, Topics
from tidemark.errors import ForbiddenError, RateLimitedError, StoreError, UnauthenticatedError
from tidemark.v1 import commit_log_pb2, commit_log_pb2_grpc, topics_pb2, topics_pb2_grpc

from .conftest import Deeds

pytestmark = pytest.mark.integration

_STREAMS = {"AppendStream", "ReadLog", "WatchCommitted"}
_CALLS = (*_STREAMS, "AppendBatch", "SendBack", "GetLogInfo")
_CALLS += ("CreateTopic", "DescribeTopic", "ListTopics", "AlterTopic", "DeleteTopic", "GetRoute")
Shown = list[tuple[str, str]]
_ANYBODY_MAY = {"AppendStream", "WatchCommitted", "GetLogInfo", "ListTopics"}  # every known principal


def test_every_rpc_of_the_contract_is_covered() -> None:
    """A new call must be added here."""
    services = {**commit_log_pb2.DESCRIPTOR.services_by_name, **topics_pb2.DESCRIPTOR.services_by_name}
    assert set(_CALLS) == {method.name for service in services.values() for method in service.methods}


def call(stubs: tuple[Any, Any], name: str, shown: Shown) -> grpc.StatusCode | None:
    """Return the code of a call with an empty request; None if it succeeds."""
    log, topics = stubs
    stub, messages = (log, commit_log_pb2) if hasattr(log, name) else (topics, topics_pb2)
    request = iter(()) if name == "AppendStream" else getattr(messages, f"{name}Request")()
    try:
        answer = getattr(stub, name)(request, metadata=shown, timeout=10)
        if name in _STREAMS:
            next(answer, None)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return None


@contextlib.contextmanager
def calling(writer: RunningWriter) -> Iterator[tuple[Any, Any]]:
    """Yield stubs without a token of their own."""
    with grpc.insecure_channel(writer.address) as channel:
        log: Any = commit_log_pb2_grpc.CommitLogServiceStub(channel)  # type: ignore[no-untyped-call, unused-ignore]
        topics: Any = topics_pb2_grpc.TopicServiceStub(channel)  # type: ignore[no-untyped-call, unused-ignore]
        yield log, topics


def test_an_unknown_caller_is_refused_everywhere(tmp_path: Path, settings: dict[str, Any]) -> None:
    """The caller has no token, or an unknown one; only the health check answers."""
    with RunningWriter(tmp_path / "store", **settings) as writer:
        with calling(writer) as stubs:
            nothing: Shown = []
            for shown in (nothing, [("authorization", "Bearer x")], [("authorization", "Basic eDp5")]):
                codes = {name: call(stubs, name, shown) for name in _CALLS}
                assert set(codes.values()) == {grpc.StatusCode.UNAUTHENTICATED}, codes
        assert is_healthy("writer", writer_listen=writer.address)


def test_a_principal_without_rights_may_only_read_the_bounds(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any], deeds: Deeds
) -> None:
    """The default is to deny; each refusal is logged."""
    token = files.principal("nobody")
    with RunningWriter(tmp_path / "store", **settings) as writer, calling(writer) as stubs:
        codes = {name: call(stubs, name, [("authorization", f"Bearer {token}")]) for name in _CALLS}
    forbidden = {name for name, code in codes.items() if code is grpc.StatusCode.PERMISSION_DENIED}
    assert forbidden == set(_CALLS) - _ANYBODY_MAY, codes
    assert {name for name, code in codes.items() if code is None} == _ANYBODY_MAY, codes
    told = {(deed["action"], deed["principal"], deed["outcome"]) for deed in deeds()}
    assert told == {(name, "nobody", "FORBIDDEN") for name in forbidden}


@pytest.mark.usefixtures("wire")
def test_a_producer_can_send_only_to_allowed_topics(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any], deeds: Deeds
) -> None:
    """A refusal concerns only its message, of which nothing is stored."""
    token = files.principal("orders")
    files.rule("orders", ["Pub"], "Topic:orders-*")
    with RunningWriter(tmp_path / "store", **settings) as writer:
        with Producer(writer.address, credentials=Credentials(token=token)) as producer:
            producer.send("orders-eu", b"1")
            with pytest.raises(ForbiddenError, match=r"orders is not allowed to .*Pub.* Topic:bills"):
                producer.send("bills", b"2")
            producer.send("orders-eu", b"3")
        for wrong in (Credentials(), Credentials(token="x")):
            with (
                Producer(writer.address, credentials=wrong, timeout_s=5) as producer,
                pytest.raises(UnauthenticatedError),
            ):
                producer.send("orders-eu", b"4", queue_id=0)
    assert [record.body for record in stored_records(tmp_path / "store")] == [b"1", b"3"]
    allowed = [deed for deed in deeds() if deed["resource"] == "Pub Topic:orders-eu" and deed["outcome"] == "ALLOWED"]
    assert sum(deed["count"] for deed in allowed) == 2
    assert {deed["address"] for deed in deeds()} == {"127.0.0.1"}


@pytest.mark.usefixtures("wire")
def test_an_open_stream_loses_revoked_rights(tmp_path: Path, files: AccessFolder, settings: dict[str, Any]) -> None:
    """A producer's open stream does not keep old rights."""
    token = files.principal("orders")
    files.rule("orders", ["Pub"], "Topic:t")
    with (
        RunningWriter(tmp_path / "store", **settings) as writer,
        Producer(writer.address, credentials=Credentials(token=token)) as producer,
    ):
        producer.send("t", b"before", queue_id=0)
        files.rule("orders", ["Pub"], "Topic:t", decision="Deny")
        assert isinstance(_first_failure(producer), ForbiddenError)
        files.forget("orders")
        assert isinstance(_first_failure(producer, UnauthenticatedError), UnauthenticatedError)


def test_a_followed_log_ends_when_the_right_is_revoked(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any]
) -> None:
    """The right is checked before each piece."""
    reader, sender = files.principal("reader"), files.principal("sender")
    files.rule("reader", ["Sub"], "Cluster:*")
    files.rule("sender", ["Pub"], "Topic:t")
    with (
        RunningWriter(tmp_path / "store", **settings) as writer,
        Producer(writer.address, credentials=Credentials(token=sender)) as producer,
        calling(writer) as (log, _),
    ):
        producer.send("t", b"1", queue_id=0)
        pieces = log.ReadLog(
            commit_log_pb2.ReadLogRequest(follow=True), metadata=[("authorization", f"Bearer {reader}")], timeout=30
        )
        assert next(pieces).data
        files.rule("reader", ["Sub"], "Cluster:*", decision="Deny")
        assert _end_of(pieces, lambda: producer.send("t", b"2", queue_id=0)) is grpc.StatusCode.PERMISSION_DENIED


def _end_of(pieces: Iterator[Any], go_on: Callable[[], object]) -> grpc.StatusCode | None:
    """Return the stream's final code while data keeps coming; None after 500 pieces."""
    try:
        for _ in range(500):
            go_on()
            next(pieces)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return None


def _first_failure(producer: Producer, kind: type[StoreError] = StoreError) -> StoreError | None:
    """Send for at most five seconds until a send fails with *kind*; return its error."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            producer.send("t", b"again", queue_id=0)
        except kind as error:
            return error
        except StoreError:
            pass
        time.sleep(0.02)
    return None


@pytest.mark.usefixtures("wire")
def test_an_invalid_access_file_keeps_the_running_rules(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any]
) -> None:
    """The previous file stays in effect."""
    token = files.principal("orders")
    files.rule("orders", ["Pub"], "Topic:t")
    with (
        RunningWriter(tmp_path / "store", **settings) as writer,
        Producer(writer.address, credentials=Credentials(token=token)) as producer,
    ):
        producer.send("t", b"1", queue_id=0)
        files.path.write_text("[[principal]]\n")
        time.sleep(0.2)
        producer.send("t", b"2", queue_id=0)
        with Topics(writer.address, credentials=Credentials(token="x")) as topics, pytest.raises(UnauthenticatedError):
            topics.list_all()


def test_a_topic_list_has_only_topics_the_caller_may_know(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any], deeds: Deeds
) -> None:
    """An administrator's action is logged with its outcome."""
    admin, reader = files.principal("admin"), files.principal("reader")
    files.rule("admin", ["All"], "*")
    files.rule("reader", ["Sub"], "Topic:b*")
    with RunningWriter(tmp_path / "store", **settings) as writer:
        with Topics(writer.address, credentials=Credentials(token=admin)) as topics:
            for name in ("a1", "b1", "b2"):
                topics.create(name, queues=1)
            with pytest.raises(StoreError):
                topics.create("a1", queues=2)
            topics.delete("b2")
        with Topics(writer.address, credentials=Credentials(token=reader)) as topics:
            assert [topic.name for topic in topics.list_all()] == ["b1"]
            with pytest.raises(ForbiddenError):
                topics.describe("a1")
    changes = [(deed["action"], deed["resource"], deed["outcome"]) for deed in deeds() if deed["principal"] == "admin"]
    assert [change for change in changes if change[2] != "ALLOWED"] == [
        ("CreateTopic", "Create Topic:a1", "OK"),
        ("CreateTopic", "Create Topic:b1", "OK"),
        ("CreateTopic", "Create Topic:b2", "OK"),
        ("CreateTopic", "Create Topic:a1", "TOPIC_EXISTS"),
        ("DeleteTopic", "Delete Topic:b2", "OK"),
    ]


def test_a_renewed_json_web_token_file_is_read_again(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any]
) -> None:
    """A client that runs for days continues, because its token is replaced before it expires."""
    issuer = Issuer()
    files.jwt(issuer, leeway_s=0)
    files.rule("jwt:alice", ["Create"], "Topic:*")
    held = tmp_path / "token"
    held.write_text(issuer.token(exp=time.time() + 1.2))
    with (
        RunningWriter(tmp_path / "store", **settings) as writer,
        Topics(writer.address, credentials=Credentials(token_file=held)) as topics,
    ):
        topics.create("first")
        time.sleep(1.3)
        with pytest.raises(UnauthenticatedError, match="expired"):
            topics.create("second")
        held.write_text(issuer.token() + "\n")
        topics.create("second")


@pytest.mark.usefixtures("wire")
def test_a_client_certificate_identifies_a_principal(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any], authority: Authority
) -> None:
    """No token is needed; a certificate that the file does not name is unknown."""
    server, good, other = (authority.issue(name) for name in ("writer-7", "orders-7", "other-7"))
    files.principal("orders", certificates=["CN=orders-7"])
    files.rule("orders", ["Pub"], "Topic:t")
    tls = {**server.settings, "tls_client_ca": authority.ca}
    with RunningWriter(tmp_path / "store", **tls, **settings) as writer:
        with Producer(writer.address, credentials=Credentials(authority.ca, good.cert, good.key)) as producer:
            producer.send("t", b"1", queue_id=0)
        with (
            Producer(writer.address, credentials=Credentials(authority.ca, other.cert, other.key)) as producer,
            pytest.raises(UnauthenticatedError, match="has a name of the client's certificate"),
        ):
            producer.send("t", b"2", queue_id=0)


@pytest.mark.usefixtures("wire")
def test_a_caller_above_the_rate_gets_a_retry_time(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any]
) -> None:
    """A call is refused with the time; a producer waits for it, and everything arrives."""
    fast = files.principal("fast", max_requests_per_s=2)
    slow = files.principal("slow", max_append_bytes_per_s=200_000)
    files.rule("slow", ["Pub"], "Topic:t")
    with RunningWriter(tmp_path / "store", max_message_size_bytes=50_000, **settings) as writer:
        with Topics(writer.address, credentials=Credentials(token=fast)) as topics:
            topics.list_all()
            topics.list_all()
            with pytest.raises(RateLimitedError) as told:
                topics.list_all()
        assert isinstance(told.value.retry_after_ms, int)
        assert told.value.retry_after_ms > 0
        began = time.monotonic()
        with Producer(writer.address, credentials=Credentials(token=slow)) as producer:
            sent = [producer.send_async("t", b"x" * 40_000, queue_id=0) for _ in range(15)]
            assert sorted(one.result().queue_offset for one in sent) == list(range(15))
        assert time.monotonic() - began > 1  # 600 kB, with a burst of 200


def test_a_writer_does_not_start_with_an_invalid_access_file(tmp_path: Path, files: AccessFolder) -> None:
    """The error names the file and the position."""
    files.path.write_text('version = 1\n[[rule]]\nprincipals = ["x"]\nresources = ["Topic:t"]\nactions = ["Pub"]\n')
    environment = {
        **os.environ,
        "TIDEMARK_ACCESS_FILE": str(files.path),
        "TIDEMARK_STORE_ROOT": str(tmp_path / "store"),
        "TIDEMARK_WRITER_LISTEN": "127.0.0.1:0",
        "TIDEMARK_WRITER_METRICS_LISTEN": "",
    }
    ended = subprocess.run(
        [sys.executable, "-m", "services.writer"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr == f"writer: ACCESS_FILE_ILLEGAL: {files.path}: rule.0: principal x is not defined\n"
    assert not (tmp_path / "store").exists()


def test_a_group_can_send_back_only_messages_it_may_read(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any], deeds: Deeds
) -> None:
    """It needs Sub on the group and on the topic: otherwise a group could copy messages that it may not read."""
    both, group_alone, topic_alone = (files.principal(name) for name in ("both", "group-alone", "topic-alone"))
    sender = files.principal("sender")
    files.rule("sender", ["Pub"], "Topic:t")
    for name in ("both", "group-alone"):
        files.rule(name, ["Sub"], "Group:g")
    for name in ("both", "topic-alone"):
        files.rule(name, ["Sub"], "Topic:t")
    with RunningWriter(tmp_path / "store", **settings) as writer, calling(writer) as (log, _):
        with Producer(writer.address, credentials=Credentials(token=sender)) as producer:
            place = producer.send("t", b"1").physical_offset
        request = commit_log_pb2.SendBackRequest(group="g", topic="t", physical_offset=place, delay_level=-1)
        for token in (group_alone, topic_alone, sender):
            with pytest.raises(grpc.RpcError) as refused:
                log.SendBack(request, metadata=[("authorization", f"Bearer {token}")], timeout=10)
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        answer = log.SendBack(request, metadata=[("authorization", f"Bearer {both}")], timeout=10)
    assert answer.topic == "%DLQ%g"
