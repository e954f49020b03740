"""`tidemark bench` against a real stack."""

from __future__ import annotations

import signal
import time

import pytest

from tests.integration.cli.conftest import Tidemark
from tidemark.cli.bench.run import new_topic
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.client import Topics
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def _topics(tidemark: Tidemark) -> list[str]:
    return [topic["topic"] for topic in tidemark.json("topic", "list")["topics"]]


def test_all_messages_are_sent_measured_and_read_back(tidemark: Tidemark) -> None:
    """Each producer sends its share in batches; the last one of each is smaller. The topic is deleted."""
    done = tidemark.json("bench", "--count", 200, "--producers", 3, "--batch", 7, "--size", 64)
    assert done["topic"] not in _topics(tidemark)
    send, visible = done["send"], done["visible"]["latency_ms"]
    assert send["messages"] == done["read_back"]["messages"] == visible["samples"] == 200
    assert send["latency_ms"]["samples"] == 10 * 3  # 67, 67 and 66 messages
    assert send["bytes_per_s"] == pytest.approx(64 * send["messages_per_s"])
    assert send["messages_per_s"] == pytest.approx(200 / send["seconds"])
    for latencies in (send["latency_ms"], visible):
        assert 0 < latencies["p50"] <= latencies["p99"] <= latencies["p999"] <= latencies["max"]
    assert done["flush_mode"] == "sync"


def test_messages_of_an_existing_topic_are_not_counted(tidemark: Tidemark) -> None:
    """It keeps all messages: the older ones, the measured ones and the first one of each producer."""
    tidemark.json("topic", "create", "benched", "--queues", 2)
    tidemark.produce("benched", given="older\n" * 5)
    done = tidemark.json("bench", "--topic", "benched", "--count", 20, "--producers", 2)
    assert done["read_back"]["messages"] == done["visible"]["latency_ms"]["samples"] == 20
    assert len(tidemark.messages("benched")) == 5 + 20 + 2


def test_a_time_limits_the_load(tidemark: Tidemark) -> None:
    """The table has both latencies."""
    done = tidemark.run("bench", "--seconds", 0.5)
    assert (done.returncode, done.stderr) == (ExitStatus.OK, b"")
    lines = done.stdout.decode().splitlines()
    assert [line.split("  ")[0] for line in lines][:3] == ["measured", "send", "read back"]
    assert lines[-2].startswith("send to answer") and lines[-1].startswith("send to visible")


def test_ctrl_c_deletes_the_topic(tidemark: Tidemark) -> None:
    """The load ends first, because a send would create the topic again."""
    with tidemark.start("bench", "--seconds", 1000) as running:
        deadline = time.monotonic() + 60
        while not any(topic.startswith("bench-") for topic in _topics(tidemark)):
            assert time.monotonic() < deadline
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == ExitStatus.INTERRUPTED
    assert not any(topic.startswith("bench-") for topic in _topics(tidemark))


def test_a_topic_that_cannot_be_deleted_is_reported(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    """The measurement is printed all the same."""
    with new_topic(stack.writer_address, "bench-gone", 1), Topics(stack.writer_address) as topics:
        topics.delete("bench-gone")
    assert "warning: the topic bench-gone was not deleted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "status", "reported"),
    [
        (("--count", "1", "--seconds", "1"), ExitStatus.USAGE, b"either --count or --seconds"),
        (("--size", "3"), ExitStatus.USAGE, b"3 is too small: at least 26"),
        (("--topic", "no-such-topic"), ExitStatus.NOT_FOUND, b"tidemark topic list"),
    ],
)
def test_invalid_loads_are_refused(
    tidemark: Tidemark, options: tuple[str, ...], status: ExitStatus, reported: bytes
) -> None:
    """Nothing is sent."""
    done = tidemark.run("bench", *options)
    assert (done.returncode, reported in done.stderr, done.stdout) == (status, True, b""), done
