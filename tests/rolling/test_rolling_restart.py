"""Each service is restarted in order, one after the other, while programs send and read."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.rolling.readers import Readers
from tests.rolling.senders import TOPIC, Senders
from tidemark.client import Topics
from tidemark.local.local_stack import PIPELINE, QUERY, WRITER, LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.exhaustive, pytest.mark.spark, pytest.mark.slow]
ROUNDS = 2
STOP_TIMEOUT_S = 60.0
SEND_TIMEOUT_S = 10.0  # a Producer's default: a longer pause is an error of a program
MOST_VISIBLE_S = 60.0  # Spark's start on a slow machine, while the pipeline is restarted
ENVIRONMENT = {"TIDEMARK_EPOCH_MS": "3000", "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(1 << 20)}


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalStack]:
    """Run all three services with short epochs and small files, so that hand-overs and rolls happen meanwhile."""
    with LocalStack(tmp_path / "store", environment=ENVIRONMENT) as running:
        with Topics(running.writer_address) as topics:
            topics.create(TOPIC, queues=4)
        yield running


def wait_for_a_send(senders: Senders) -> None:
    """Wait until a further send is acknowledged, or one has failed, which the test reports."""
    deadline, before = time.monotonic() + 2 * SEND_TIMEOUT_S, len(senders.sent)
    while len(senders.sent) == before and not senders.errors:
        assert time.monotonic() < deadline, "no further send was acknowledged"
        time.sleep(0.02)


def wait_until_read(bodies: set[str], everybody: Sequence[Readers]) -> None:
    """Wait until all readers have read all *bodies*, or one has failed."""
    deadline = time.monotonic() + 2 * MOST_VISIBLE_S
    while not all(bodies <= set(one.bodies) for one in everybody) and not any(one.errors for one in everybody):
        assert time.monotonic() < deadline, [len(bodies - set(one.bodies)) for one in everybody]
        time.sleep(0.1)


def test_a_rolling_restart_causes_no_error_loss_or_long_pause(stack: LocalStack, tell: Callable[[str], None]) -> None:
    """No error reaches a sender or a reader, nothing is lost, doubled or out of order, and no pause is long."""
    alone = Readers(stack.query_url)
    group = Readers(stack.query_url, 2, group="rolling", auto_commit=False, commit=True)
    by_itself = Readers(stack.query_url, group="by-itself", wire="grpc")
    everybody = (alone, group, by_itself)
    with Senders(stack.writer_address) as senders, alone, group, by_itself:
        for name in itertools.chain.from_iterable([(WRITER, PIPELINE, QUERY)] * ROUNDS):
            began = time.monotonic()
            assert stack.services[name].stop(STOP_TIMEOUT_S) == 0
            stack.start_service(name)
            wait_for_a_send(senders)
            wait_until_read(set(senders.sent), everybody)
            tell(f"{name:<8} restarted, and all earlier messages read, after {time.monotonic() - began:.1f} s")
        senders.stop()
        wait_until_read(set(senders.sent), everybody)
    assert [*senders.errors, *(error for one in everybody for error in one.errors)] == []
    for one in everybody:
        assert sorted(one.bodies) == sorted(senders.sent)  # each once
    for number, bodies in enumerate(senders.acknowledged):
        assert [body for body in alone.read[0] if body.startswith(f"{number}/")] == bodies  # one queue each, in order
    tell(
        f"sent {len(senders.sent)}; longest send {senders.longest_s:.2f} s; longest until read {alone.longest_s:.2f} s"
    )
    assert senders.longest_s < SEND_TIMEOUT_S
    assert max(one.longest_s for one in everybody) < MOST_VISIBLE_S
