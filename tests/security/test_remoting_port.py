"""Hostile clients at the writer's remoting port, in a process of its own."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable, Iterator

import pytest

from tests.remoting_client import RemotingClient
from tests.security.clients import MEBIBYTE, closed_after, connect, idle_connections, memory_of, until_closed
from tests.security.test_connections import ANSWER_WITHIN_S, WANTED
from tests.security.test_many_names import NAMES, WARM
from tests.unit.remoting.frames import frame_bytes
from tidemark.client import Producer
from tidemark.local.local_stack import WRITER, LocalStack
from tidemark.remoting.heartbeats import ConsumerData, ConsumeType, HeartbeatData, MessageModel, heartbeat_body

from .conftest import Start

Remote = Callable[..., tuple[LocalStack, int]]
LARGE = frame_bytes(b'{"code":310,"opaque":1}', bytes(16 * MEBIBYTE - 100))


@pytest.fixture
def start_remoting(start: Start) -> Remote:
    """Return a function that runs a writer, and returns it with the remoting port."""

    def begin(**settings: object) -> tuple[LocalStack, int]:
        stack = start(WRITER, **settings)
        return stack, int(stack.writer_remoting_address.rpartition(":")[2])

    return begin


def test_ten_thousand_idle_connections_do_not_block_other_clients(
    start_remoting: Remote, tell: Callable[[str], None]
) -> None:
    """Sends by both interfaces continue, and memory grows only by the sockets."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(WANTED, files - 2_000)
    stack, port = start_remoting()
    with RemotingClient(port) as client, Producer(stack.writer_address) as producer:
        client.send_message("orders", b"before")
        before = memory_of(stack, WRITER)
        with idle_connections(port, count):
            slowest = 0.0
            for _ in range(50):
                began = time.monotonic()
                client.send_message("orders", b"meanwhile")
                producer.send("orders", b"meanwhile")
                with RemotingClient(port) as another:
                    another.send_message("orders", b"a new one")
                slowest = max(slowest, time.monotonic() - began)
            grown = (memory_of(stack, WRITER) - before) // MEBIBYTE
        stack.check()
    tell(f"{count:,} idle connections to the remoting port: slowest round {slowest:.3f} s, memory + {grown} MiB")
    assert slowest < ANSWER_WITHIN_S
    assert grown < 500


def test_incomplete_frames_of_many_connections_use_bounded_memory(
    start_remoting: Remote, tell: Callable[[str], None]
) -> None:
    """Two hundred times 16 MiB without the last byte: few are kept at a time."""
    stack, port = start_remoting(REMOTING_MAX_INCOMPLETE_BYTES=128 * MEBIBYTE)
    before = memory_of(stack, WRITER)
    most = 0
    with contextlib.ExitStack() as held, RemotingClient(port) as client:
        for _ in range(200):
            connection = held.enter_context(connect(port))
            with contextlib.suppress(OSError):
                connection.sendall(LARGE[:-1])
            most = max(most, memory_of(stack, WRITER) - before)
        client.send_message("orders", b"meanwhile")
    tell(f"200 incomplete frames of 16 MiB: writer's memory + {most // MEBIBYTE} MiB")
    assert most < 400 * MEBIBYTE


def test_incomplete_frames_and_silent_connections_are_closed(start_remoting: Remote) -> None:
    """Each after its own time, also to a port with a connection limit."""
    _, port = start_remoting(
        REMOTING_FRAME_TIMEOUT_MS=1_000, REMOTING_IDLE_TIMEOUT_MS=3_000, REMOTING_MAX_CONNECTIONS=50
    )
    seconds, said = closed_after(connect(port, LARGE[:100]), 20)
    assert (0.5 < seconds < 10, said) == (True, b"")
    seconds, said = closed_after(connect(port), 20)
    assert (2 < seconds < 15, said) == (True, b"")
    with idle_connections(port, 60) as connections:
        assert until_closed(connections, 3) >= 10
        assert until_closed(connections, 20) == 60
    with RemotingClient(port) as client:
        assert client.send_message("orders", b"afterwards").queue_offset == 0


def test_a_hundred_thousand_names_take_no_memory(start_remoting: Remote) -> None:
    """Topics in routes and sends, groups in lists and heartbeats that come and go, codes and tokens."""
    stack, port = start_remoting(AUTO_CREATE_TOPICS="false")
    with RemotingClient(port) as client:
        _ask(client, range(WARM))
        before = memory_of(stack, WRITER)
        _ask(client, range(WARM, NAMES))
        assert memory_of(stack, WRITER) - before < 50 * MEBIBYTE


def _ask(client: RemotingClient, numbers: range) -> None:
    for some in _in_hundreds(numbers):
        for number in some:
            name = f"name-{number}"
            match number % 6:
                case 0:
                    client.send(105, {"topic": name})
                case 1:
                    client.send(38, {"consumerGroup": name})
                case 2:
                    client.send(number + 1_000_000)
                case 3:
                    client.send(105, {"topic": "x", "SecurityToken": name})
                case 4:
                    consumer = ConsumerData(name, ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING, "", ())
                    client.send(34, body=heartbeat_body(HeartbeatData(name, (), (consumer,))))
                case _:
                    client.send(35, {"clientID": f"name-{number - 1}", "consumerGroup": f"name-{number - 1}"})
        for _ in some:
            client.receive()
        client.notices.clear()


def _in_hundreds(numbers: range) -> Iterator[range]:
    return (numbers[at : at + 100] for at in range(0, len(numbers), 100))


def test_groups_and_members_are_limited(start_remoting: Remote) -> None:
    """One client cannot take all the memory with heartbeats."""
    stack, port = start_remoting()
    before = memory_of(stack, WRITER)
    with RemotingClient(port) as client:
        refused = 0
        for number in range(60):
            consumers = tuple(
                ConsumerData(f"g{number}-{i}", ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING, "", ())
                for i in range(1_000)
            )
            refused += client.call(34, body=heartbeat_body(HeartbeatData("a", (), consumers))).code == 2
        assert refused >= 50
        client.send_message("orders", b"meanwhile")
    assert memory_of(stack, WRITER) - before < 150 * MEBIBYTE
