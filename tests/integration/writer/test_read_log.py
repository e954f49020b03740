"""ReadLog, WatchCommitted, GetLogInfo, health and reflection."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.access_files import AccessFolder
from tests.builders import wire_batch
from tests.health_checks import is_healthy
from tidemark.store.checkpoint import Checkpoint
from tidemark.store.originals.terms import current_term
from tidemark.v1 import commit_log_pb2 as pb

from .harness import ADVERTISED, RunningWriter, log_bytes, refusal_of

pytestmark = pytest.mark.integration

BIG = wire_batch((bytes(range(256)) * 1600, b"", 0))


def read(writer: RunningWriter, **fields: object) -> list[pb.ReadLogResponse]:
    return list(writer.log.ReadLog(pb.ReadLogRequest(**fields), timeout=20))  # type: ignore[arg-type]


def test_read_log_returns_the_committed_bytes_of_the_files(writer: RunningWriter) -> None:
    """They come in slices of at most 1 MiB, contiguous over a file's edge, up to the present committed offset."""
    for _ in range(5):
        end = writer.append("t", BIG).end_physical_offset
    slices = read(writer)
    assert b"".join(part.data for part in slices) == b"".join(log_bytes(writer.root).values())[:end]
    at = 0
    for part in slices:
        assert (part.physical_offset, part.committed_offset, part.term) == (at, end, 1)
        assert 0 < len(part.data) <= 1 << 20
        at += len(part.data)


def test_read_log_reads_a_range(writer: RunningWriter) -> None:
    """It reads from any offset, at most max_bytes."""
    writer.append("t", BIG)
    (part,) = read(writer, physical_offset=100, max_bytes=50)
    assert part.data == log_bytes(writer.root)[0][100:150]


def test_read_log_at_the_committed_offset_is_empty(writer: RunningWriter) -> None:
    """The end is exclusive: there is nothing there yet, and that is no error."""
    end = writer.append("t", BIG).end_physical_offset
    assert read(writer, physical_offset=end) == []


@pytest.mark.parametrize(
    ("fields", "reason", "code"),
    [
        ({"physical_offset": 1 << 40}, "OFFSET_OUT_OF_RANGE", "OUT_OF_RANGE"),
        ({"physical_offset": -1}, "OFFSET_TOO_SMALL", "OUT_OF_RANGE"),
        ({"max_bytes": -1}, "ARGUMENT_ILLEGAL", "INVALID_ARGUMENT"),
    ],
)
def test_read_log_refuses_offsets_outside_the_log(
    writer: RunningWriter, fields: dict[str, int], reason: str, code: str
) -> None:
    """The error has the bounds for the next request."""
    refusal = refusal_of(lambda: read(writer, **fields))
    assert (refusal.reason, refusal.code.name) == (reason, code)
    if code == "OUT_OF_RANGE":
        assert (refusal.facts["min_offset"], refusal.facts["max_offset"]) == ("0", "0")


def test_read_log_follows(writer: RunningWriter) -> None:
    """With follow the stream continues as more is committed, and ends at max_bytes."""
    first = writer.append("t", wire_batch((b"one", b"", 0))).end_physical_offset
    stream = writer.log.ReadLog(pb.ReadLogRequest(follow=True, max_bytes=2 * first), timeout=20)
    assert len(next(stream).data) == first
    writer.append("t", wire_batch((b"two", b"", 0)))
    rest = b"".join(part.data for part in stream)
    assert rest == log_bytes(writer.root)[0][first : 2 * first]


def test_watch_committed_returns_the_current_offset_and_every_change(writer: RunningWriter) -> None:
    """The first answer comes at once; later ones ascend to the last append's end, which is in the checkpoint."""
    stream = writer.log.WatchCommitted(pb.WatchCommittedRequest(), timeout=20)
    assert next(stream).committed_offset == 0
    for _ in range(5):
        end = writer.append("t", wire_batch((b"x", b"", 0))).end_physical_offset
    seen = [0]
    while seen[-1] < end:
        seen.append(next(stream).committed_offset)
    assert seen == sorted(set(seen))
    checkpoint = Checkpoint.open_read_only(writer.root / "checkpoint")
    assert checkpoint.committed_offset == end
    checkpoint.close()
    stream.cancel()


def test_followers_are_notified_when_the_writer_stops(tmp_path: Path) -> None:
    """Watchers and followers end with STORE_CLOSED, and the stop does not wait for them."""
    with RunningWriter(tmp_path) as writer:
        watch = writer.log.WatchCommitted(pb.WatchCommittedRequest())
        follow = writer.log.ReadLog(pb.ReadLogRequest(follow=True))
        next(watch)
        stopper = threading.Timer(0.2, writer.stop)
        stopper.start()
        for stream in (watch, follow):
            assert refusal_of(lambda stream=stream: next(stream)).reason == "STORE_CLOSED"
        stopper.join()


def test_log_info_returns_bounds_limits_and_identity(writer: RunningWriter) -> None:
    """It has every end, every limit, and the identity of the store."""
    end = writer.append("t", BIG).end_physical_offset
    info = writer.info()
    assert (info.store_name, info.advertised_address, info.term) == ("tidemark-0", ADVERTISED, 1)
    assert (info.recovered_end_offset, info.min_physical_offset) == (0, 0)
    assert info.committed_offset == info.flushed_offset == info.max_physical_offset == end
    assert (info.flush_mode, info.segment_size_bytes) == (pb.FLUSH_MODE_SYNC, 1 << 20)
    assert (info.max_message_size_bytes, info.max_properties_size_bytes) == (4_194_304, 32_767)
    assert info.max_in_flight_bytes == writer.settings.max_in_flight_bytes


def test_each_start_is_a_new_term(tmp_path: Path) -> None:
    """Terms count up and are on disk with the recovered end; every answer has the current one."""
    ends = [0]
    for number in (1, 2, 3):
        with RunningWriter(tmp_path) as writer:
            assert current_term(tmp_path / "tidemark" / "writer" / "terms")[:2] == (number, ends[-1])
            assert writer.info().recovered_end_offset == ends[-1]
            answer = writer.append("t", wire_batch((b"x", b"", 0)))
            assert answer.term == number
            ends.append(answer.end_physical_offset)


@pytest.mark.parametrize("service", ["", "tidemark.v1.CommitLogService", "tidemark.v1.TopicService"])
def test_health_reports_serving(writer: RunningWriter, service: str) -> None:
    """The standard health service knows the server and each of its services."""
    stub = health_pb2_grpc.HealthStub(writer.channel)
    assert stub.Check(health_pb2.HealthCheckRequest(service=service)).status == health_pb2.HealthCheckResponse.SERVING


def test_healthcheck_distinguishes_a_serving_writer_from_none(writer: RunningWriter) -> None:
    """Containers use this check."""
    assert is_healthy("writer", writer_listen=writer.address)
    assert not is_healthy("writer", writer_listen="127.0.0.1:1")


def test_reflection_lists_the_services(writer: RunningWriter) -> None:
    """grpcurl and similar tools find the services without proto files."""
    stub = reflection_pb2_grpc.ServerReflectionStub(writer.channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    (answer,) = stub.ServerReflectionInfo(iter([request]))
    names = {service.name for service in answer.list_services_response.service}
    assert {"tidemark.v1.CommitLogService", "tidemark.v1.TopicService", "grpc.health.v1.Health"} <= names


def lists_services(writer: RunningWriter) -> bool:
    stub = reflection_pb2_grpc.ServerReflectionStub(writer.channel)
    call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
    answers = []
    with contextlib.suppress(grpc.RpcError):
        answers = list(call)
    assert call.code() in (grpc.StatusCode.OK, grpc.StatusCode.UNIMPLEMENTED)
    return bool(answers)


@pytest.mark.parametrize("setting", [None, True, False])
@pytest.mark.parametrize("has_access_file", [False, True])
def test_reflection_is_off_with_access_rules_unless_it_is_switched_on(
    tmp_path: Path, has_access_file: bool, setting: bool | None
) -> None:
    """It answers without a token, so with access rules it must be enabled explicitly."""
    settings: dict[str, Any] = {"grpc_reflection": setting}
    if has_access_file:
        (tmp_path / "access").mkdir()
        settings["access_file"] = AccessFolder(tmp_path / "access").path
    with RunningWriter(tmp_path / "store", **settings) as writer:
        assert lists_services(writer) is (not has_access_file if setting is None else setting)


def test_unknown_method_is_unimplemented(writer: RunningWriter) -> None:
    """The interceptor passes unknown methods through."""
    call: Any = writer.channel.unary_unary("/tidemark.v1.CommitLogService/Nothing")
    with pytest.raises(grpc.RpcError) as error:
        call(b"")
    assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED
