"""`tidemark consume` from a real stack."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from tests.integration.cli.conftest import COMMAND, Tidemark
from tidemark.cli.terminal.exit_status import ExitStatus

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def topic(tidemark: Tidemark) -> str:
    """Create three queues with a hundred messages, each with a key and one of two tags."""
    tidemark.json("topic", "create", "consumed", "--queues", 3)
    lines = [json.dumps({"id": f"k{number}", "kind": "ab"[number % 2], "n": number}) for number in range(100)]
    options = ("--format", "jsonl", "--key-field", "id", "--tag-field", "kind")
    assert tidemark.produce("consumed", *options, given="\n".join(lines)) == 100
    return "consumed"


def _numbers(messages: list[dict[str, str]]) -> list[int]:
    return [json.loads(message["body"])["n"] for message in messages]


def test_all_queues_are_read_each_in_its_order(tidemark: Tidemark, topic: str) -> None:
    """Every message comes once."""
    messages = tidemark.messages(topic)
    assert sorted(_numbers(messages)) == list(range(100))
    for queue_id in range(3):
        numbers = _numbers([message for message in messages if message["queue_id"] == queue_id])
        assert numbers == sorted(numbers)
        assert numbers == _numbers(tidemark.messages(topic, "--queue", queue_id))


def test_from_to_and_max_limit_the_messages(tidemark: Tidemark, topic: str) -> None:
    """They are offsets of one queue; --to is exclusive."""
    offsets = [one["queue_offset"] for one in tidemark.messages(topic, "--queue", 1, "--from", 3, "--to", 7)]
    assert offsets == [3, 4, 5, 6]
    assert len(tidemark.messages(topic, "--max", 10)) == 10
    assert tidemark.messages(topic, "--from", "latest") == []


def test_from_and_to_times_limit_the_messages(tidemark: Tidemark, topic: str) -> None:
    """They are store times, in milliseconds or as RFC 3339."""
    messages = tidemark.messages(topic)
    last = max(message["store_timestamp_ms"] for message in messages)
    wanted = [message for message in messages if message["store_timestamp_ms"] >= last]
    assert tidemark.messages(topic, "--from", f"{last}ms") == wanted
    assert tidemark.messages(topic, "--to", f"{last}ms") == [one for one in messages if one not in wanted]
    assert tidemark.messages(topic, "--from", "2999-01-01T00:00:00Z") == []


@pytest.mark.parametrize("options", [("--from", "-1h"), ("--from=-1h",), ("--from", "yesterday", "--to", "now")])
def test_times_relative_to_now_limit_the_messages(tidemark: Tidemark, topic: str, options: tuple[str, ...]) -> None:
    """A value that begins with a minus sign is not taken for an option."""
    assert len(tidemark.messages(topic, *options)) == 100


@pytest.mark.parametrize("options", [("--from", "now"), ("--to", "-1h"), ("--to", "yesterday")])
def test_times_relative_to_now_exclude_messages(tidemark: Tidemark, topic: str, options: tuple[str, ...]) -> None:
    """All messages were stored within the last hour."""
    assert tidemark.messages(topic, *options) == []


def test_tag_and_key_options_select_messages(tidemark: Tidemark, topic: str) -> None:
    """The queue filters tags, the index finds keys."""
    assert sorted(_numbers(tidemark.messages(topic, "--tag", "a"))) == list(range(0, 100, 2))
    assert _numbers(tidemark.messages(topic, "--key", "k42")) == [42]
    assert tidemark.messages(topic, "--key", "k42", "--from", "2999-01-01T00:00:00Z") == []


def test_raw_bodies_are_printed_byte_for_byte(tidemark: Tidemark) -> None:
    """Bodies may contain newlines if a NUL byte ends each."""
    tidemark.json("topic", "create", "raw", "--queues", 1)
    bodies = [b"text", b"\xff\xfe\x01", "ü".encode()]
    assert tidemark.produce("raw", given=b"\n".join(bodies)) == 3
    assert tidemark.run("consume", "raw", "--output", "raw").stdout == b"".join(body + b"\n" for body in bodies)
    assert tidemark.run("consume", "raw", "-o", "raw", "--null").stdout == b"".join(body + b"\0" for body in bodies)
    shown = tidemark.run("consume", "raw").stdout.decode().splitlines()
    assert shown[0].split() == ["queue", "offset", "stored", "tag", "keys", "body"]
    assert shown[2].endswith("base64://4B")


def test_a_closed_pipe_ends_consume_quietly(tidemark: Tidemark, topic: str) -> None:
    """consume … | head: exit status 0, no output on standard error."""
    script = f'{" ".join(COMMAND)} consume {topic} --output json | head -n 1; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", script], env=tidemark.environment, capture_output=True, text=True, check=False, timeout=100
    )
    first, status = done.stdout.splitlines()
    assert json.loads(first)["topic"] == topic
    assert (status, done.stderr) == ("0", "")


def test_a_closed_pipe_ends_consume_follow_quietly(tidemark: Tidemark) -> None:
    """It ends when the next message comes."""
    tidemark.json("topic", "create", "gone", "--queues", 2)
    with tidemark.start("consume", "gone", "--follow", "--output", "json") as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert tidemark.produce("gone", given="a\n") == 1
        assert json.loads(follower.stdout.readline())["body"] == "a"
        follower.stdout.close()
        assert tidemark.produce("gone", given="b\n") == 1
        assert follower.wait(30) == ExitStatus.OK
        assert follower.stderr.read() == b""


def test_ctrl_c_ends_a_follower_with_130(tidemark: Tidemark, topic: str) -> None:
    """There is no traceback."""
    with tidemark.start("consume", topic, "--follow", "--output", "raw") as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        for _ in range(100):
            follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        assert follower.wait(30) == ExitStatus.INTERRUPTED
        assert follower.stderr.read() == b"interrupted\n"


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["no-such-topic"], ExitStatus.NOT_FOUND, b"tidemark topic list"),
        (["consumed", "--queue", "9"], ExitStatus.NOT_FOUND, b"no queue 9"),
        (["consumed", "--queue", "0", "--from", "1000000"], ExitStatus.NOT_FOUND, b"OFFSET_OUT_OF_RANGE"),
        (["consumed", "--from", "5"], ExitStatus.USAGE, b"name it with --queue"),
        (["consumed", "--from", "tomorrow"], ExitStatus.USAGE, b"RFC 3339"),
        (["consumed", "--null"], ExitStatus.USAGE, b"--output raw"),
        (["consumed", "--key", "k1", "--follow"], ExitStatus.USAGE, b"--key"),
        (["consumed", "--query", "nonsense"], ExitStatus.USAGE, b"not an http or https address"),
    ],
)
def test_invalid_consume_arguments_are_reported(
    tidemark: Tidemark, topic: str, arguments: list[str], status: ExitStatus, told: bytes
) -> None:
    """The error names a remedy; there is no traceback and no standard output."""
    done = (
        tidemark.run("consume", *arguments, "--output", "json")
        if "--null" not in arguments
        else tidemark.run("consume", *arguments)
    )
    assert (done.returncode, told in done.stderr, done.stdout) == (status, True, b""), done
    assert b"Traceback" not in done.stderr


def test_consume_without_a_query_service_names_a_remedy(nowhere: Tidemark) -> None:
    """The exit status is 5, for an unreachable service."""
    done = nowhere.run("consume", "orders")
    assert done.returncode == ExitStatus.UNAVAILABLE
    assert b"tidemark serve" in done.stderr
