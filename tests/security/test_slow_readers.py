"""Clients that request much data and read none of it: the unsent data is bounded, and the clients are disconnected."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import grpc
import httpx
import pytest

from tests.builders import wire_batch
from tests.pipeline_runs import build, plan_of
from tests.security.clients import MEBIBYTE, connect, memory_of, until_closed
from tidemark.client import Producer
from tidemark.local.local_stack import QUERY, WRITER, LocalStack
from tidemark.v1 import commit_log_pb2 as pb

from .conftest import Start

PULL = b"GET /v1/topics/orders/queues/0/messages?max_bytes=67108864&max_messages=32768 HTTP/1.1\r\nHost: x\r\n"
RECORDS = b"Accept: application/octet-stream\r\n\r\n"
CLIENTS = 40


def filled(stack: LocalStack) -> None:
    """Store 64 MiB in one queue, visible."""
    with Producer(stack.writer_address) as producer:
        for _ in range(64):
            producer.send("orders", bytes(MEBIBYTE - 1_000), queue_id=0)
    build(plan_of(stack.data, shards=1))


@contextlib.contextmanager
def unread_requests(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Open clients that have requested all of it, and read nothing."""
    connections = [connect(port, PULL + RECORDS, receive_buffer=4096) for _ in range(count)]
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()


def greatest_memory(stack: LocalStack, service: str, during_s: float) -> int:
    """Return the maximum memory of a service within the next seconds."""
    most, until = 0, time.monotonic() + during_s
    while time.monotonic() < until:
        most = max(most, memory_of(stack, service))
        time.sleep(0.02)
    return most


def test_unread_answers_are_bounded_and_end(start: Start, tell: Callable[[str], None]) -> None:
    """Of forty times 64 MiB, few are in memory, the others get 429; in the end all are disconnected."""
    limit = 256 * MEBIBYTE
    stack = start(QUERY_MAX_UNTAKEN_BYTES=limit, QUERY_WRITE_TIMEOUT_MS=8_000)
    filled(stack)
    before = memory_of(stack, QUERY)
    with unread_requests(stack.query_port, CLIENTS) as connections:
        grown = greatest_memory(stack, QUERY, 2) - before
        assert httpx.get(f"{stack.query_url}/v1/status", timeout=60).status_code == 200
        refusal = httpx.get(f"{stack.query_url}/v1/topics/orders/queues/0/messages", timeout=60)
        assert (refusal.status_code, refusal.json()["reason"]) == (429, "IN_FLIGHT_LIMIT")
        assert refusal.headers["retry-after"] == "1"
        time.sleep(18)  # twice the time: at first the kernel buffers some of it
        assert until_closed(connections, 10) == CLIENTS
    tell(f"{CLIENTS} clients that requested 64 MiB each and read nothing: query's memory + {grown // MEBIBYTE} MiB")
    assert grown < 2 * limit + 300 * MEBIBYTE  # plus the data that is being made meanwhile
    assert httpx.get(f"{stack.query_url}/v1/topics/orders/queues/0/messages", timeout=60).status_code == 200


@pytest.mark.usefixtures("wire")
def test_a_stream_with_unread_answers_is_not_read_further(start: Start) -> None:
    """AppendStream: the writer accepts a limited number of batches, and serves others meanwhile."""
    stack = start(WRITER, FLUSH_MODE="async")
    sent = 0

    def batches() -> Iterator[pb.AppendStreamRequest]:
        nonlocal sent
        request = pb.AppendBatchRequest(topic="orders", queue_id=0, packed=wire_batch((b"x", b"", 0)))
        while True:
            entries = [pb.AppendStreamRequest.Entry(correlation_id=sent + i, batch=request) for i in range(1_000)]
            sent += len(entries)
            yield pb.AppendStreamRequest(batches=entries)

    before = memory_of(stack, WRITER)
    with grpc.insecure_channel(stack.writer_address) as channel:
        call = channel.stream_stream(
            "/tidemark.v1.CommitLogService/AppendStream", pb.AppendStreamRequest.SerializeToString, lambda raw: raw
        )(batches())
        seen = -1
        deadline = time.monotonic() + 60
        while seen != sent:  # until it stops
            assert time.monotonic() < deadline
            seen = sent
            time.sleep(2)
        assert 0 < sent < 400_000
        assert memory_of(stack, WRITER) - before < 200 * MEBIBYTE
        with Producer(stack.writer_address) as producer:
            assert producer.send("others", b"meanwhile").queue_offset == 0
        call.cancel()


def test_unread_log_streams_use_bounded_memory(start: Start) -> None:
    """ReadLog: fifty streams of 64 MiB each, of which nothing is read."""
    stack = start(WRITER)
    with Producer(stack.writer_address) as producer:
        for _ in range(64):
            producer.send("orders", bytes(MEBIBYTE - 1_000), queue_id=0)
    before = memory_of(stack, WRITER)
    options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    with contextlib.ExitStack() as channels:
        for _ in range(50):
            channel = channels.enter_context(grpc.insecure_channel(stack.writer_address, options))
            read = channel.unary_stream("/tidemark.v1.CommitLogService/ReadLog", lambda raw: raw, lambda raw: raw)
            channels.callback(read(b"").cancel)
        time.sleep(3)
        assert memory_of(stack, WRITER) - before < 300 * MEBIBYTE
        with Producer(stack.writer_address) as producer:
            assert producer.send("others", b"meanwhile").queue_offset == 0


@pytest.mark.parametrize("algorithm", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_compressed_request_is_limited_by_its_decompressed_size(start: Start, algorithm: grpc.Compression) -> None:
    """A compression bomb of gRPC, a gigabyte of zeros in a megabyte, is refused before it is fully decompressed."""
    stack = start(WRITER)
    before = memory_of(stack, WRITER)
    body = bytes(1 << 30)
    with grpc.insecure_channel(stack.writer_address, [("grpc.max_send_message_length", -1)]) as channel:
        call = channel.unary_unary("/tidemark.v1.CommitLogService/AppendBatch", lambda raw: raw, lambda raw: raw)
        with pytest.raises(grpc.RpcError) as refused:
            call(body, timeout=60, compression=algorithm)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert memory_of(stack, WRITER) - before < 300 * MEBIBYTE
    with Producer(stack.writer_address) as producer:
        assert producer.send("others", b"lives on").queue_offset == 0
