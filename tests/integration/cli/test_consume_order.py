"""The order of `tidemark consume` over several queues, its newest messages, and its templates."""

from __future__ import annotations

import os
import pty
import signal
import subprocess

import pytest

from tests.integration.cli.conftest import COMMAND, Tidemark
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.client import Producer
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_COUNT = 60


@pytest.fixture(scope="module")
def topic(tidemark: Tidemark, stack: LocalStack) -> str:
    """Create three queues with sixty messages, one after the other; the first two have the tag `rare`."""
    tidemark.json("topic", "create", "in-order", "--queues", 3)
    with Producer(stack.writer_address) as producer:
        for number in range(_COUNT):
            tag = "rare" if number < 2 else "usual"
            sent = producer.send("in-order", str(number), queue_id=number % 3, tag=tag)
    tidemark.wait_for(sent.end_physical_offset)
    return "in-order"


def _bodies(tidemark: Tidemark, *arguments: object) -> list[int]:
    return [int(message["body"]) for message in tidemark.messages(*arguments)]


def test_by_time_merges_all_queues(tidemark: Tidemark, topic: str) -> None:
    """Without it, one queue follows the other."""
    assert _bodies(tidemark, topic, "--by-time") == list(range(_COUNT))
    assert _bodies(tidemark, topic, "--by-time", "--max", 7) == list(range(7))
    assert _bodies(tidemark, topic) == sorted(range(_COUNT), key=lambda number: number % 3)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--tail", 7), list(range(_COUNT - 7, _COUNT))),
        (("--tail", 1000), list(range(_COUNT))),
        (("--tail", 2, "--queue", 1), [_COUNT - 5, _COUNT - 2]),
        (("--tail", 5, "--tag", "rare"), [0, 1]),
        (("--tail", 1, "--tag", "rare"), [1]),
        (("--tail", 2, "--queue", 0, "--to", 3), [3, 6]),
        (("--tail", 2, "--queue", 0, "--from", 19), [57]),
        (("--tail", 3, "--to", "-1h"), []),
    ],
)
def test_tail_prints_the_newest_messages_of_all_queues(
    tidemark: Tidemark, topic: str, options: tuple[object, ...], expected: list[int]
) -> None:
    """They are in the order of their store times, also if few messages of a queue match."""
    assert _bodies(tidemark, topic, *options) == expected


def test_tail_with_follow_prints_later_messages_after_the_newest(tidemark: Tidemark) -> None:
    """No message is printed twice."""
    tidemark.json("topic", "create", "tail-follow", "--queues", 2)
    tidemark.produce("tail-follow", given="a\nb\nc\n")
    with tidemark.start("consume", "tail-follow", "--tail", 2, "--follow", "--output", "raw") as follower:
        assert follower.stdout is not None
        assert [follower.stdout.readline() for _ in range(2)] == [b"b\n", b"c\n"]
        tidemark.produce("tail-follow", given="d\n")
        assert follower.stdout.readline() == b"d\n"
        follower.send_signal(signal.SIGINT)
        assert follower.wait(30) == ExitStatus.INTERRUPTED
        assert follower.stdout.read() == b""


def test_a_template_writes_parts_as_they_are_into_a_pipe(tidemark: Tidemark) -> None:
    """The body is not escaped, and no newline is added."""
    tidemark.json("topic", "create", "template", "--queues", 1)
    assert tidemark.produce("template", given=b"\x1b[31mred\n\xff\n") == 2
    shown = tidemark.run("consume", "template", "--template", r"%q/%o:%b\0")
    assert (shown.stdout, shown.stderr, shown.returncode) == (b"0/0:\x1b[31mred\x000/1:\xff\x00", b"", ExitStatus.OK)


def test_a_template_escapes_parts_on_a_terminal(tidemark: Tidemark) -> None:
    """A message cannot set the terminal's colours."""
    tidemark.json("topic", "create", "template-tty", "--queues", 1)
    assert tidemark.produce("template-tty", given=b"\x1b[31mred\n") == 1
    master, slave = pty.openpty()
    command = [*COMMAND, "consume", "template-tty", "--template", r"<%b>"]
    subprocess.run(command, env=tidemark.environment, stdout=slave, timeout=100, check=True)
    os.close(slave)
    assert os.read(master, 1000) == rb"<\x1b[31mred>"
    os.close(master)


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (("--by-time", "--follow"), b"cannot be combined with --follow"),
        (("--tail", "3", "--key", "k"), b"can only be combined with --max"),
        (("--tail", "0"), b"--tail"),
        (("--template", "%z"), b"%z is unknown"),
        (("--template", "%b", "--output", "json"), b"cannot be combined with --output json"),
        (("--group", "g", "--tail", "3"), b"--group"),
        (("--group", "g", "--from", "3"), b"give earliest, latest or a time"),
        (("--group", "g", "--to", "now"), b"cannot be combined"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(nowhere: Tidemark, options: tuple[str, ...], reported: bytes) -> None:
    """No service is asked."""
    done = nowhere.run("consume", "in-order", *options)
    assert (done.returncode, reported in done.stderr, done.stdout) == (ExitStatus.USAGE, True, b""), done
