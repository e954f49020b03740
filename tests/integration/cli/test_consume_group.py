"""`tidemark consume --group`: the committed offsets are those of the printed messages."""

from __future__ import annotations

import fcntl
import json
import signal
import struct
import termios
import time

import pytest

from tests.integration.cli.conftest import Tidemark
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.client import Producer, Query
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_LARGE, _LARGE_BYTES = 50, 10_000
_SIGNALS = [(signal.SIGINT, ExitStatus.INTERRUPTED), (signal.SIGTERM, ExitStatus.TERMINATED)]


@pytest.fixture(scope="module")
def topic(tidemark: Tidemark) -> str:
    """Create two queues with messages, and one without."""
    tidemark.json("topic", "create", "by-group", "--queues", 3)
    for _ in range(2):
        assert tidemark.produce("by-group", given="a\nb\nc\n") == 3
    return "by-group"


@pytest.fixture(scope="module")
def large(tidemark: Tidemark, stack: LocalStack) -> str:
    """Create a queue with more bytes than a pipe takes."""
    tidemark.json("topic", "create", "large", "--queues", 1)
    with Producer(stack.writer_address) as producer:
        for _ in range(_LARGE):
            sent = producer.send("large", b"x" * _LARGE_BYTES)
    tidemark.wait_for(sent.end_physical_offset)
    return "large"


def _committed(tidemark: Tidemark, group: str) -> int:
    """Return the number of messages up to the group's offsets."""
    return sum(queue["offset"] for queue in tidemark.json("group", "show", group)["queues"])


def test_a_member_continues_at_the_groups_offsets(tidemark: Tidemark, topic: str) -> None:
    """It commits the printed messages, and ends at the visible end."""
    read = ("consume", topic, "--group", "continuing", "--output", "raw")
    first = tidemark.run(*read, "--max", 2).stdout.splitlines()
    assert (len(first), _committed(tidemark, "continuing")) == (2, 2)
    rest = tidemark.run(*read).stdout.splitlines()
    assert sorted(first + rest) == sorted([b"a", b"b", b"c"] * 2)
    assert tidemark.json("group", "lag", "continuing")["lag"] == 0
    last = tidemark.run(*read)
    assert (last.stdout, last.stderr, last.returncode) == (b"", b"", ExitStatus.OK)


@pytest.mark.parametrize("start", ["latest", "now"])
def test_a_new_group_starts_at_the_given_position(tidemark: Tidemark, topic: str, start: str) -> None:
    """Nothing was stored since then."""
    done = tidemark.run("consume", topic, "--group", f"from-{start}", "--from", start, "--output", "raw")
    assert (done.stdout, done.returncode) == (b"", ExitStatus.OK)
    assert tidemark.json("group", "lag", f"from-{start}")["lag"] == 0


def test_the_forms_of_a_group_are_those_without_a_group(tidemark: Tidemark, topic: str) -> None:
    """JSON has the same fields, but for the CRC."""
    plain = sorted(tidemark.messages(topic), key=lambda message: str(message["message_id"]))
    member = sorted(tidemark.messages(topic, "--group", "json"), key=lambda message: str(message["message_id"]))
    assert member == [{name: value for name, value in one.items() if name != "body_crc"} for one in plain]
    table = tidemark.run("consume", topic, "--group", "table").stdout.splitlines()
    assert table[0].split() == [b"queue", b"offset", b"stored", b"tag", b"keys", b"body"]
    assert len(table) == 1 + 6


@pytest.mark.parametrize(("number", "status"), _SIGNALS)
def test_a_signal_commits_the_printed_messages(
    tidemark: Tidemark, topic: str, number: signal.Signals, status: ExitStatus
) -> None:
    """The member leaves the group, so that the next one gets the queues at once."""
    with tidemark.start("consume", topic, "--group", number.name, "--follow", "--output", "json") as member:
        assert member.stdout is not None
        assert member.stderr is not None
        lines = [json.loads(member.stdout.readline()) for _ in range(6)]
        member.send_signal(number)
        assert member.wait(30) == status
        assert member.stderr.read().endswith(b"messages printed and committed: 6\n")
    assert len(lines) == _committed(tidemark, number.name) == 6
    assert tidemark.json("group", "show", number.name)["members"] == []


@pytest.mark.parametrize(("number", "status"), _SIGNALS)
def test_a_signal_while_the_reader_is_slow_commits_the_written_messages(
    tidemark: Tidemark, large: str, number: signal.Signals, status: ExitStatus
) -> None:
    """A message of which the pipe has taken only a part is not committed."""
    group = f"slow-{number.name}"
    with tidemark.start("consume", large, "--group", group, "--follow", "--output", "raw") as member:
        assert member.stdout is not None
        _wait_until_full(member.stdout.fileno())
        member.send_signal(number)
        assert member.wait(30) == status
        complete = member.stdout.read().count(b"\n")
    assert 0 < complete < _LARGE
    assert _committed(tidemark, group) == complete


def _wait_until_full(descriptor: int) -> None:
    """Wait until the pipe holds messages, and no more for a second."""
    deadline = time.monotonic() + 60
    seen = [0]
    while len(seen) < 10 or seen[-10] != seen[-1] or not seen[-1]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        seen.append(_size(descriptor))


def _size(descriptor: int) -> int:
    (size,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4))
    return int(size)


def test_a_closed_pipe_commits_the_written_messages(tidemark: Tidemark, large: str) -> None:
    """The pipe has taken more than its reader has read, but not all."""
    with tidemark.start("consume", large, "--group", "closed", "--output", "raw") as member:
        assert member.stdout is not None
        assert member.stderr is not None
        for _ in range(3):
            member.stdout.readline()
        member.stdout.close()
        assert member.wait(30) == ExitStatus.OK
        assert member.stderr.read() == b""
    assert 3 <= _committed(tidemark, "closed") < _LARGE


def test_a_closed_pipe_ends_an_idle_member(tidemark: Tidemark) -> None:
    """It would keep queues from other members otherwise."""
    tidemark.json("topic", "create", "idle", "--queues", 1)
    with tidemark.start("consume", "idle", "--group", "idle", "--follow", "--output", "raw") as member:
        assert member.stdout is not None
        member.stdout.close()
        assert member.wait(30) == ExitStatus.OK


def test_a_member_without_queues_says_so(tidemark: Tidemark) -> None:
    """Another member has the only queue."""
    tidemark.json("topic", "create", "held", "--queues", 1)
    first = {"topics": ["held"], "member_id": "0", "session_timeout_ms": 60_000}  # the first in the order of ids
    with Query(tidemark.query_url) as query:
        query.post("/v1/groups/held/members", first)
    with tidemark.start("consume", "held", "--group", "held", "--output", "raw") as member:
        assert member.wait(60) == ExitStatus.OK
        assert member.stderr is not None
        assert b"this one got none" in member.stderr.read()
