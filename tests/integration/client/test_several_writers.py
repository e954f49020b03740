"""One producer over two real writers: both are used; one is killed, hangs, or is missing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from tests.fixed_ports import fixed_port
from tests.integration.client.stored import records
from tidemark.client import Producer, SendResult
from tidemark.local.local_stack import WRITER, LocalStack

pytestmark = pytest.mark.integration


@pytest.fixture
def pair(wire: str, tmp_path: Path) -> Iterator[tuple[LocalStack, LocalStack]]:
    """Run two writers, each of its own store, with the topic `t` of two queues."""
    with (
        LocalStack(tmp_path / "a", services=(WRITER,), environment={"TIDEMARK_STORE_NAME": "a"}) as a,
        LocalStack(tmp_path / "b", services=(WRITER,), environment={"TIDEMARK_STORE_NAME": "b"}) as b,
    ):
        for stack in (a, b):
            with Producer(stack.writer_address) as producer:
                producer.topics.create("t", queues=2)
        yield a, b


def addresses(pair: tuple[LocalStack, LocalStack]) -> str:
    return ",".join(stack.writer_address for stack in pair)


def test_both_writers_get_messages(pair: tuple[LocalStack, LocalStack]) -> None:
    """A result has the writer and the place there."""
    with Producer(addresses(pair)) as producer:
        results = [producer.send("t", b"%d" % n) for n in range(40)]
    assert Counter(result.writer for result in results) == {stack.writer_address: 20 for stack in pair}
    for stack in pair:
        stored = {(one.queue_id, one.queue_offset): one.body for one in records(stack.writer_address, "t")}
        assert stored == {
            (result.queue_id, result.queue_offset): b"%d" % n
            for n, result in enumerate(results)
            if result.writer == stack.writer_address
        }


@pytest.mark.crash
@pytest.mark.parametrize("accumulate", [False, True])
def test_a_killed_writer_loses_and_duplicates_nothing(pair: tuple[LocalStack, LocalStack], accumulate: bool) -> None:
    """After SIGKILL under load the other writer takes over at once; batches in flight wait for the first one."""
    killed, alive = pair
    with Producer(addresses(pair), timeout_s=60, accumulate=accumulate) as producer:
        futures: list[Future[SendResult]] = []
        while_down: list[float] = []
        killer = threading.Thread(target=_kill_and_restart, args=(killed, while_down))
        killer.start()
        began = time.monotonic()
        while killer.is_alive() or time.monotonic() - began < 3:
            futures.append(producer.send_async("t", b"%d" % len(futures)))
            time.sleep(0.001)
        results = [future.result() for future in futures]
    stored = [one.body for stack in pair for one in records(stack.writer_address, "t")]
    assert sorted(stored) == sorted(b"%d" % n for n in range(len(futures)))
    down, up = while_down
    times = [one.store_timestamp / 1000 for one in records(alive.writer_address, "t")]
    assert sum(down < when < up for when in times) > 50
    assert {result.writer for result in results} == {stack.writer_address for stack in pair}


def _kill_and_restart(stack: LocalStack, while_down: list[float]) -> None:
    time.sleep(0.8)
    assert stack.services[WRITER].kill() == -signal.SIGKILL
    while_down.append(time.time())
    time.sleep(1.0)
    while_down.append(time.time())
    stack.start_service(WRITER)


def test_half_of_the_writers_may_be_down_at_the_start(pair: tuple[LocalStack, LocalStack]) -> None:
    """The others take all messages."""
    present, _ = pair
    with Producer([f"127.0.0.1:{fixed_port()}", present.writer_address], timeout_s=5) as producer:
        assert {producer.send("t", b"x").writer for _ in range(20)} == {present.writer_address}


def test_a_writer_that_hangs_is_avoided(pair: tuple[LocalStack, LocalStack]) -> None:
    """With the switch on, only batches in flight wait for the stopped writer; the others go to the second one."""
    hanging, well = pair
    with Producer(addresses(pair), timeout_s=20, avoid_slow_writers=True) as producer:
        assert {producer.send("t", b"x").writer for _ in range(8)} == {stack.writer_address for stack in pair}
        pid = hanging.services[WRITER].pid
        os.killpg(pid, signal.SIGSTOP)
        try:
            early = [producer.send_async("t", b"early") for _ in range(20)]
            time.sleep(0.7)
            late = [producer.send("t", b"late") for _ in range(20)]
        finally:
            os.killpg(pid, signal.SIGCONT)
        assert {result.writer for result in late} == {well.writer_address}
        assert {future.result().writer for future in early} == {stack.writer_address for stack in pair}
