"""Faults on the way to the writer and the query service, with each of the client's wires."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.access_files import AccessFolder
from tests.built_store import BuiltStore
from tests.certificates import Authority
from tests.fixed_ports import fixed_port
from tests.integration.client.stored import records
from tests.integration.writer.harness import RunningWriter, stored_records
from tests.proxy import Proxy
from tests.query_server import serve_query, serve_query_over_tls
from tests.waiting import until
from tidemark.client import AsyncConsumer, AsyncProducer, Consumer, Credentials, Producer, SendResult, TopicQueue
from tidemark.client.consumer.remoting_pulls import RemotingPulls
from tidemark.client.wire.remoting_stream import RemotingStream
from tidemark.client.wire.wire import Wire
from tidemark.errors import DeadlineExceededError, ForkedProcessError, UnauthenticatedError, WriterUnreachableError
from tidemark.local.local_stack import WRITER, LocalStack

pytestmark = pytest.mark.integration

LONG_S = 30.0
Q0 = TopicQueue("orders", 0)
PORT_0 = "127.0.0.1:0"


def uses_remoting(producer: Producer) -> bool:
    (link,) = producer._writers.by_address.values()
    return isinstance(link.stream, RemotingStream)


def connect(producer: Producer) -> int:
    """Send until the wire is chosen; return the number of messages that were sent."""
    for _ in range(2):
        producer.send("connect", b"x")
    return 2


def reads_remoting(consumer: Consumer) -> bool:
    return isinstance(next(iter(consumer._stores)).buffer._pulls, RemotingPulls)


@contextlib.contextmanager
def proxied(root: Path, **settings: Any) -> Iterator[tuple[RunningWriter, Proxy]]:
    """Run a writer that offers the address of a proxy, before its remoting port."""
    with Proxy() as proxy:
        given = {"writer_remoting_listen": PORT_0, "writer_remoting_address": proxy.address, **settings}
        with RunningWriter(root, **given) as writer:
            proxy.target = writer.remoting_port
            yield writer, proxy


@contextlib.contextmanager
def proxied_query(store: BuiltStore) -> Iterator[tuple[str, Proxy]]:
    """Serve *store*, with a proxy before the remoting port."""
    port = fixed_port()
    with (
        Proxy(port) as proxy,
        serve_query(
            store.root, query_remoting_listen=f"127.0.0.1:{port}", query_remoting_address=proxy.address
        ) as client,
    ):
        yield str(client.base_url), proxy


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a store with a message in a queue of `orders`."""
    made = BuiltStore(tmp_path / "store")
    made.topic("orders")
    put(made, b"a")
    return made


def put(store: BuiltStore, *bodies: bytes) -> None:
    for body in bodies:
        store.append("orders", body)
    store.publish()


# ── the choice of the wire ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_producer_uses_the_wire_that_is_chosen(wire: str, writer: LocalStack) -> None:
    with Producer(writer.writer_address) as producer:
        producer.send("chosen", b"x")
        assert uses_remoting(producer) == (wire == "remoting")
    with Producer(writer.writer_address, wire="grpc") as producer:
        producer.send("chosen", b"x")
        assert not uses_remoting(producer)


def test_a_consumer_uses_the_wire_that_is_chosen(wire: str, store: BuiltStore) -> None:
    with serve_query(store.root, query_remoting_listen=PORT_0) as client:
        choices: tuple[Wire | None, ...] = (None, "grpc")
        for chosen in choices:
            with Consumer("orders", url=str(client.base_url), wire=chosen) as consumer:
                assert [message.body for message in consumer.poll(LONG_S)] == [b"a"]
                assert reads_remoting(consumer) == (chosen is None and wire == "remoting")


@pytest.mark.usefixtures("wire")
@pytest.mark.parametrize("offer", ["127.0.0.1:1", "no-such-host.invalid:10911"])
def test_an_offered_address_out_of_reach_leaves_the_client_on_grpc_and_http(
    tmp_path: Path, store: BuiltStore, offer: str
) -> None:
    with (
        RunningWriter(tmp_path / "w", writer_remoting_listen=PORT_0, writer_remoting_address=offer) as writer,
        Producer(writer.address) as producer,
    ):
        assert [producer.send("t", b"x", queue_id=0).queue_offset for _ in range(3)] == [0, 1, 2]
        assert not uses_remoting(producer)
    with (
        serve_query(store.root, query_remoting_listen=PORT_0, query_remoting_address=offer) as client,
        Consumer("orders", url=str(client.base_url)) as consumer,
    ):
        assert [message.body for message in consumer.poll(LONG_S)] == [b"a"]
        assert not reads_remoting(consumer)


@pytest.mark.usefixtures("wire")
def test_services_without_remoting_are_used_over_grpc_and_http(tmp_path: Path, store: BuiltStore) -> None:
    """An older service's answers have no such field, which reads the same."""
    with RunningWriter(tmp_path / "w") as writer, Producer(writer.address) as producer:
        assert writer.info().remoting_address == ""
        assert producer.send("t", b"x").queue_offset == 0
        assert not uses_remoting(producer)
    with serve_query(store.root) as client, Consumer("orders", url=str(client.base_url)) as consumer:
        assert client.get("/v1/watermark").json()["remoting_address"] is None
        assert [message.body for message in consumer.poll(LONG_S)] == [b"a"]
        assert not reads_remoting(consumer)


def test_a_batch_fits_into_a_frame_even_if_the_limit_of_frames_is_smaller(tmp_path: Path) -> None:
    """Otherwise the connection of a legal batch would end again and again."""
    small: dict[str, Any] = {"writer_remoting_listen": PORT_0, "remoting_max_frame_bytes": 1 << 20}
    with (
        RunningWriter(tmp_path / "w", commit_log_segment_size_bytes=16 << 20, **small) as writer,
        Producer(writer.address, wire="remoting") as producer,
    ):
        first = connect(producer)
        assert uses_remoting(producer)
        assert producer.send("t", bytes(2 << 20)).queue_offset == 0
    assert len(stored_records(tmp_path / "w")) == first + 1


@pytest.mark.parametrize("threads", [1, 8])
def test_no_send_fails_when_the_wire_is_chosen_while_others_send(writer: LocalStack, wire: str, threads: int) -> None:
    """Some senders know the queue and do not wait for the route, with which the offer comes."""
    for number in range(10):
        with Producer(writer.writer_address) as producer, ThreadPoolExecutor(threads) as pool:
            options: list[dict[str, Any]] = [{"queue_id": 0}, {}, {"key": "k"}] * 8
            topic = f"choosing-{threads}-{number}"
            results = list(pool.map(lambda given, topic=topic: producer.send(topic, b"x", **given), options))
            assert len(results) == len(options)


# ── other threads ───────────────────────────────────────────────────────────────────────────────────────────────────


LONE = """
import sys, threading
from tidemark.client import Consumer, Producer
from tidemark.client.wire.remoting_stream import RemotingStream
writer, url = sys.argv[1:]
with Producer(writer) as producer:
    while not isinstance(producer._writers.link(writer).stream, RemotingStream):
        producer.send("lone", b"first")
    others = {thread.name for thread in threading.enumerate()[1:]}
    for number in range(50):
        producer.send("lone", b"x", key="k")
        print([thread.name for thread in threading.enumerate()[1:] if thread.name not in others], end="")
    print(sorted(name for name in others if "tidemark" in name), end=" ")
with Consumer("orders", url=url) as consumer:
    before = threading.active_count()
    while consumer.poll(0.2):
        print(threading.active_count() - before, end=" ")
"""


def test_a_lone_send_and_a_lone_poll_use_no_other_thread(writer: LocalStack, wire: str, store: BuiltStore) -> None:
    """Once the wire is chosen, the caller's thread does everything."""
    if wire == "grpc":
        return
    with serve_query(store.root, query_remoting_listen=PORT_0) as client:
        command = [sys.executable, "-c", LONE, writer.writer_address, str(client.base_url)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["[]" * 51, "0"], done.stderr


# ── kills and cuts ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.crash
def test_a_killed_writer_gets_the_messages_of_many_threads_once_and_in_order(own_writer: LocalStack) -> None:
    """Sixteen threads send and wait, others send asynchronously; SIGKILL and a restart on the same ports, twice."""
    senders, sent, stopping = 16, [0] * 20, threading.Event()

    def run(sender: int) -> list[SendResult]:
        results = []
        while not stopping.is_set():
            results.append(producer.send("killed", f"{sender}/{sent[sender]}", key=f"s{sender}"))
            sent[sender] += 1
        return results

    def run_async(sender: int) -> list[SendResult]:
        futures = []
        while not stopping.is_set():
            futures.append(producer.send_async("killed", f"{sender}/{sent[sender]}", key=f"s{sender}"))
            sent[sender] += 1
            time.sleep(0.002)
        return [future.result() for future in futures]

    with Producer(own_writer.writer_address, timeout_s=60) as producer, ThreadPoolExecutor(len(sent)) as pool:
        working = [pool.submit(run if n < senders else run_async, n) for n in range(len(sent))]
        for _ in range(2):
            enough = sum(sent) + 300
            until(lambda enough=enough: sum(sent) > enough)  # type: ignore[misc]
            assert own_writer.services[WRITER].kill() == -signal.SIGKILL
            own_writer.start_service(WRITER)
        stopping.set()
        results = [one.result() for one in working]
    assert [len(one) for one in results] == sent
    stored = records(own_writer.writer_address, "killed")
    by_place = {(one.queue_id, one.queue_offset): one.body.decode() for one in stored}
    for sender, places in enumerate(results):
        bodies = [by_place[one.queue_id, one.queue_offset] for one in places]
        assert bodies == [f"{sender}/{number}" for number in range(sent[sender])]
        assert [one.queue_offset for one in places] == sorted(one.queue_offset for one in places)
    assert len(stored) == sum(sent), "nothing is stored twice"


@pytest.mark.parametrize("size", [1, 30, 2_000, 300_000])
def test_a_connection_that_is_cut_within_a_frame_loses_and_doubles_nothing(tmp_path: Path, size: int) -> None:
    with (
        proxied(tmp_path, commit_log_segment_size_bytes=16 << 20) as (writer, proxy),
        Producer(writer.address, wire="remoting") as producer,
    ):
        first = connect(producer)
        assert uses_remoting(producer)
        for cut in range(3):
            proxy.cut_after(size)
            futures = [producer.send_async("t", bytes([cut]) * 20_000, queue_id=0) for _ in range(30)]
            assert producer.send("t", b"lone", queue_id=0).queue_offset == 31 * (cut + 1) - 1
            assert [future.result().queue_offset for future in futures] == list(range(31 * cut, 31 * cut + 30))
        assert proxy.accepted == 4
    assert len(stored_records(tmp_path)) == first + 3 * 31


def test_a_consumer_whose_connection_is_cut_continues(store: BuiltStore) -> None:
    with proxied_query(store) as (url, proxy), Consumer("orders", url=url, wire="remoting") as consumer:
        assert [message.body for message in consumer.poll(LONG_S)] == [b"a"]
        for number in range(3):
            proxy.cut()
            put(store, b"%d" % number)
            assert [message.body for message in consumer.poll(LONG_S)] == [b"%d" % number]
        assert reads_remoting(consumer)
        assert proxy.accepted == 4


# ── silence ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [10, 4 << 20])
def test_a_send_on_a_stalled_connection_ends_at_its_timeout(tmp_path: Path, size: int) -> None:
    """The next one is sent on a new connection, even if the old one stays open."""
    with (
        proxied(tmp_path, commit_log_segment_size_bytes=16 << 20) as (writer, proxy),
        Producer(writer.address, wire="remoting", timeout_s=2) as producer,
    ):
        connect(producer)
        proxy.stall()
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises((DeadlineExceededError, WriterUnreachableError)):
                producer.send("t", bytes(size), queue_id=0)
            assert time.monotonic() - began < 10
        assert producer.flush(), "a failure that was raised does not count, and nothing is in flight"
        proxy.flow()
        assert producer.send("t", b"last", queue_id=0).count == 1
        assert proxy.accepted > 1


@pytest.mark.usefixtures("wire")
def test_an_interrupted_send_is_still_counted_by_flush(tmp_path: Path) -> None:
    """KeyboardInterrupt ends the wait, not the send."""
    with proxied(tmp_path) as (writer, proxy), Producer(writer.address, timeout_s=LONG_S) as producer:
        first = connect(producer)
        proxy.stall()
        is_grpc = not uses_remoting(producer)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            _wait(producer)
        timer.join()
        proxy.flow()
        assert producer.flush(LONG_S)
        assert producer.send("t", b"second", queue_id=0, request_id="second").duplicate
        assert is_grpc or proxy.accepted == 2
    assert [record.body for record in stored_records(tmp_path)][first:] == [b"second"]


def _wait(producer: Producer) -> None:
    while True:  # over gRPC the send is acknowledged at once
        producer.send("t", b"second", queue_id=0, request_id="second")


def test_a_writer_that_reads_nothing_does_not_block_the_event_loop(own_writer: LocalStack) -> None:
    """Its sends end when it reads again."""

    async def send_while_stopped() -> tuple[list[SendResult], float]:
        async with AsyncProducer(own_writer.writer_address, timeout_s=LONG_S) as producer:
            connect(producer.producer)
            pid = own_writer.services[WRITER].pid
            os.kill(pid, signal.SIGSTOP)
            longest_s, ended = 0.0, time.monotonic() + 3
            try:
                sends = [asyncio.create_task(producer.send("orders", b"x" * (1 << 18))) for _ in range(60)]
                while time.monotonic() < ended:
                    began = time.monotonic()
                    await asyncio.sleep(0.01)
                    longest_s = max(longest_s, time.monotonic() - began)
            finally:
                os.kill(pid, signal.SIGCONT)
            return await asyncio.gather(*sends), longest_s

    results, longest_s = asyncio.run(send_while_stopped())
    assert len({(result.queue_id, result.queue_offset) for result in results}) == 60
    assert longest_s < 0.5


@pytest.mark.usefixtures("wire")
def test_a_cancelled_send_is_stored_once_and_the_producer_continues(tmp_path: Path) -> None:
    async def run(address: str, proxy: Proxy) -> None:
        async with AsyncProducer(address, timeout_s=LONG_S) as producer:
            connect(producer.producer)
            proxy.stall()
            sending = asyncio.create_task(producer.send("t", b"cancelled", queue_id=0))
            await asyncio.sleep(0.1)
            sending.cancel()
            await asyncio.wait([sending])
            proxy.flow()
            assert (await producer.send("t", b"last", queue_id=0)).queue_offset == 1
            assert await producer.flush(LONG_S)

    with proxied(tmp_path) as (writer, proxy):
        asyncio.run(run(writer.address, proxy))
    assert [record.body for record in stored_records(tmp_path) if record.topic == b"t"] == [b"cancelled", b"last"]


@pytest.mark.usefixtures("wire")
def test_a_cancelled_poll_returns_its_messages_later(store: BuiltStore) -> None:
    async def run(url: str) -> list[bytes]:
        async with AsyncConsumer(queues=[Q0], url=url) as consumer:
            for delay in (0, 0.001, 0.01, 0.1):
                waiting = asyncio.create_task(consumer.poll(20))
                await asyncio.sleep(delay)
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    return [message.body for message in await waiting]
            return [message.body for message in await consumer.poll(10)]

    with serve_query(store.root, query_remoting_listen=PORT_0) as client:
        assert asyncio.run(run(str(client.base_url))) == [b"a"]


# ── stops ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("wire")
def test_a_restart_of_the_writer_is_no_error_of_its_senders(tmp_path: Path) -> None:
    """A stopping writer refuses new requests (GO_AWAY), and answers those in work."""
    listen: dict[str, Any] = {
        "writer_listen": f"127.0.0.1:{fixed_port()}",
        "writer_remoting_listen": f"127.0.0.1:{fixed_port()}",
    }
    stopping = threading.Event()

    def run(sender: int) -> int:
        count = 0
        while not stopping.is_set():
            count += producer.send("t", f"{sender}/{count}", key=f"s{sender}").count
        return count

    with Producer(listen["writer_listen"], timeout_s=LONG_S) as producer, ThreadPoolExecutor(4) as pool:
        working = []
        for number in range(3):
            with RunningWriter(tmp_path, **listen) as writer:
                if not number:
                    working = [pool.submit(run, sender) for sender in range(4)]
                before = writer.info().committed_offset
                until(lambda writer=writer, before=before: writer.info().committed_offset > before + 5_000)  # type: ignore[misc]
                if number == 2:
                    stopping.set()
                    counts = [one.result(LONG_S) for one in working]
    bodies = [record.body.decode() for record in stored_records(tmp_path)]
    for sender, count in enumerate(counts):
        assert [one for one in bodies if one.startswith(f"{sender}/")] == [f"{sender}/{n}" for n in range(count)]
    assert len(bodies) == sum(counts)


# ── callers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("wire")
def test_a_rotated_token_is_used_and_a_wrong_one_refused_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "access"
    folder.mkdir()
    files = AccessFolder(folder)
    old, new = files.principal("old"), files.principal("new")
    for name in ("old", "new"):
        files.rule(name, ["Pub"], "Topic:*")
    token = tmp_path / "token"
    token.write_text(old)
    settings: dict[str, Any] = {"access_file": files.path, "access_reload_ms": 10, "writer_remoting_listen": PORT_0}
    with (
        RunningWriter(tmp_path / "store", **settings) as writer,
        Producer(writer.address, credentials=Credentials(token_file=token), timeout_s=LONG_S) as producer,
    ):
        producer.send("t", b"1", queue_id=0)
        files.forget("old")
        until(lambda: _is_refused(writer, old))
        began = time.monotonic()
        with pytest.raises(UnauthenticatedError):
            producer.send("t", b"2", queue_id=0)
        assert time.monotonic() - began < LONG_S / 2
        token.write_text(new)
        assert producer.send("t", b"3", queue_id=0).queue_offset == 1
    stored = stored_records(tmp_path / "store")
    assert [record.body for record in stored if record.topic == b"t"] == [b"1", b"3"]


def _is_refused(writer: RunningWriter, token: str) -> bool:
    with Producer(writer.address, credentials=Credentials(token=token), wire="grpc") as producer:
        try:
            producer.send("other", b"x", queue_id=0, request_id="probe")
        except UnauthenticatedError:
            return True
    return False


@pytest.mark.usefixtures("wire")
def test_limits_delay_sends_and_lose_none(tmp_path: Path) -> None:
    """RESOURCE_EXHAUSTED: requests a second, and bytes in flight at the writer."""
    limits: dict[str, Any] = {"max_message_size_bytes": 10_000, "max_in_flight_bytes": 20_000}
    given = {"writer_remoting_listen": PORT_0, **limits}
    with RunningWriter(tmp_path, **given) as writer, Producer(writer.address, timeout_s=60) as producer:
        futures = [producer.send_async("t", bytes(5_000), queue_id=0) for _ in range(40)]
        assert sorted(future.result().queue_offset for future in futures) == list(range(40))


@pytest.mark.parametrize("is_client_known", [False, True])
@pytest.mark.usefixtures("wire")
def test_frames_are_sent_and_pulled_over_tls(
    wire: str, tmp_path: Path, store: BuiltStore, authority: Authority, is_client_known: bool
) -> None:
    server, own = authority.issue("wires"), authority.issue("wires-client", uses="clientAuth")
    settings: dict[str, Any] = {**server.settings, **({"tls_client_ca": authority.ca} if is_client_known else {})}
    tls = Credentials(authority.ca, own.cert, own.key) if is_client_known else Credentials(authority.ca)
    with (
        RunningWriter(tmp_path / "w", writer_remoting_listen=PORT_0, **settings) as writer,
        Producer(writer.address, credentials=tls) as producer,
    ):
        for number in range(5):
            assert producer.send("t", bytes(300_000), queue_id=0).queue_offset == 2 * number
            assert producer.send_async("t", b"x", queue_id=0).result().queue_offset == 2 * number + 1
        assert uses_remoting(producer) == (wire == "remoting")
    with serve_query_over_tls(store.root, tls.context(), query_remoting_listen=PORT_0, **settings) as client:
        put(store, *(bytes(20_000) for _ in range(40)))
        with Consumer("orders", url=str(client.base_url), credentials=tls) as consumer:
            got: list[bytes] = []
            while len(got) < 41:
                messages = consumer.poll(LONG_S)
                assert messages
                got += [message.body for message in messages]
            assert reads_remoting(consumer) == (wire == "remoting")


@pytest.mark.usefixtures("wire")
def test_a_consumer_of_a_parent_is_refused_in_a_forked_child_and_continues(store: BuiltStore) -> None:
    with serve_query(store.root, query_remoting_listen=PORT_0) as client:
        with Consumer("orders", url=str(client.base_url)) as consumer:
            assert len(consumer.poll(LONG_S)) == 1
            reader, pipe = os.pipe()
            child = os.fork()
            if not child:
                try:
                    consumer.poll(1)
                except ForkedProcessError:
                    os.write(pipe, b"refused")
                os._exit(0)
            os.waitpid(child, 0)
            assert os.read(reader, 10) == b"refused"
            put(store, b"b")
            assert [message.body for message in consumer.poll(LONG_S)] == [b"b"]
        os.close(reader)
        os.close(pipe)
