"""A hundred thousand topics, groups and paths in requests: neither metric labels nor memory grow with them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import grpc
import httpx

from tests.builders import wire_batch
from tests.fixed_ports import fixed_port
from tests.security.clients import MEBIBYTE, connect, memory_of
from tidemark.local.local_stack import QUERY, WRITER
from tidemark.v1 import commit_log_pb2 as pb

from .conftest import Start

NAMES = 100_000
WARM = 5_000  # the first requests, whose data a service keeps, such as bounded caches
AT_ONCE = 100


def ask_for(port: int, paths: Iterator[str]) -> None:
    """Request each path with GET over one connection, with a hundred outstanding."""
    with connect(port) as connection:
        for some in iter(lambda: [path for _, path in zip(range(AT_ONCE), paths, strict=False)], []):
            connection.sendall("".join(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n" for path in some).encode())
            read_answers(connection, len(some))


def read_answers(connection: socket.socket, count: int) -> None:
    """Read *count* problems, none of which is a failure of the service."""
    received = b""
    while received.count(b'"reason"') < count or not received.endswith(b"}\n"):
        piece = connection.recv(1 << 20)
        assert piece, received[-500:]
        received += piece
    assert b"HTTP/1.1 5" not in received


def series(text: str) -> int:
    """Return the number of series of a page of metrics."""
    return sum(not line.startswith("#") for line in text.splitlines())


def paths_of(numbers: range) -> Iterator[str]:
    kinds = ("/v1/topics/t{}/queues/0/messages", "/v1/topics/t{}", "/v1/groups/g{}", "/none/{}")
    for number in numbers:
        yield kinds[number % len(kinds)].format(number)


def test_names_in_requests_are_not_kept(start: Start, tell: Callable[[str], None]) -> None:
    """The topics and groups do not exist, and the paths have no route."""
    stack = start(QUERY)
    ask_for(stack.query_port, paths_of(range(WARM)))
    httpx.get(f"{stack.query_url}/metrics")  # this request counts itself
    before, labels = memory_of(stack, QUERY), series(httpx.get(f"{stack.query_url}/metrics").text)
    ask_for(stack.query_port, paths_of(range(WARM, NAMES)))
    grown = memory_of(stack, QUERY) - before
    tell(f"{NAMES:,} names in questions: query's memory + {grown / MEBIBYTE:.1f} MiB")
    assert series(httpx.get(f"{stack.query_url}/metrics").text) == labels
    assert grown < 30 * MEBIBYTE


def batches(numbers: range) -> Iterator[pb.AppendStreamRequest]:
    wire = wire_batch((b"x", b"", 0))
    for first in range(numbers.start, numbers.stop, AT_ONCE):
        yield pb.AppendStreamRequest(
            batches=[
                pb.AppendStreamRequest.Entry(batch=pb.AppendBatchRequest(topic=f"t{number}", queue_id=0, packed=wire))
                for number in range(first, first + AT_ONCE)
            ]
        )


def refused(address: str, numbers: range) -> int:
    """Return the number of these topics that the writer refuses."""
    with grpc.insecure_channel(address) as channel:
        call = channel.stream_stream(
            "/tidemark.v1.CommitLogService/AppendStream",
            pb.AppendStreamRequest.SerializeToString,
            pb.AppendStreamResponse.FromString,
        )
        answers = call(batches(numbers), timeout=200)
        return sum(result.HasField("error") for answer in answers for result in answer.results)


def test_names_in_appends_are_not_kept(start: Start, tell: Callable[[str], None]) -> None:
    """Topics are not created automatically: each append fails with TOPIC_NOT_FOUND, and none is counted by its name."""
    metrics = fixed_port()
    stack = start(WRITER, AUTO_CREATE_TOPICS=False, WRITER_METRICS_LISTEN=f"127.0.0.1:{metrics}")
    assert refused(stack.writer_address, range(WARM)) == WARM
    before, labels = memory_of(stack, WRITER), series(httpx.get(f"http://127.0.0.1:{metrics}/metrics").text)
    assert refused(stack.writer_address, range(WARM, NAMES)) == NAMES - WARM
    grown = memory_of(stack, WRITER) - before
    tell(f"{NAMES:,} names in appends: writer's memory + {grown / MEBIBYTE:.1f} MiB")
    assert series(httpx.get(f"http://127.0.0.1:{metrics}/metrics").text) == labels
    assert grown < 30 * MEBIBYTE
