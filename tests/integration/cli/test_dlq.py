"""`tidemark dlq` on dead letters that a real consumer has made."""

from __future__ import annotations

import json
import threading
import uuid
from typing import Any

import pytest

from tests.integration.cli.conftest import Tidemark
from tests.waiting import until
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.client import Consumer, Message, Producer, ReceivedMessage

pytestmark = [pytest.mark.integration, pytest.mark.slow]

COUNT = 3


@pytest.fixture
def failed(tidemark: Tidemark) -> tuple[str, str]:
    """Return topic and group of a handler that has finally failed for COUNT messages."""
    topic = group = f"dead-{uuid.uuid4().hex[:8]}"
    tidemark.json("topic", "create", topic, "--queues", 1)
    writer = tidemark.environment["TIDEMARK_WRITER_ADDRESS"]
    with Producer(writer) as producer:
        for number in range(COUNT):
            producer.send(Message(topic, f"m{number}", tag="A", keys=[f"k{number}"], properties={"n": str(number)}))
    stop = threading.Event()
    attempts: list[str] = []

    def fail(message: ReceivedMessage) -> None:
        attempts.append(message.text())
        if len(attempts) == COUNT:
            stop.set()
        raise RuntimeError("no")

    with Consumer(topic, group=group, url=tidemark.query_url) as consumer:
        consumer.consume(fail, max_attempts=1, writer=writer, stop=stop, on_error=lambda *_: None)
    until(lambda: _of(tidemark, group)["messages"] == COUNT)
    return topic, group


def _of(tidemark: Tidemark, group: str) -> dict[str, Any]:
    """Return the group's entry in `dlq list`."""
    found = [one for one in tidemark.json("dlq", "list")["groups"] if one["group"] == group]
    return found[0] if found else {"messages": 0}


def test_dead_letters_are_listed_and_shown_with_their_topic(tidemark: Tidemark, failed: tuple[str, str]) -> None:
    """The output is JSON, one line each, or a table."""
    topic, group = failed
    assert _of(tidemark, group)["waiting"] == COUNT
    shown = [json.loads(line) for line in tidemark.run("dlq", "show", group, "--output", "json").stdout.splitlines()]
    assert sorted(message["body"] for message in shown) == ["m0", "m1", "m2"]
    assert {message["origin_topic"] for message in shown} == {topic}
    lines = tidemark.run("dlq", "show", group, "--max", 2).stdout.decode().splitlines()
    assert len(lines) == 3
    assert topic in lines[1]


def test_redriven_dead_letters_equal_the_first_send(tidemark: Tidemark, failed: tuple[str, str]) -> None:
    """Each goes back once: a second redrive starts after the first."""
    topic, group = failed
    redrive = ("dlq", "redrive", group, "--yes")
    assert tidemark.json(*redrive, "--max", 1) == {"group": group, "sent": 1, "waiting": COUNT - 1}
    assert tidemark.json(*redrive) == {"group": group, "sent": COUNT - 1, "waiting": 0}
    assert tidemark.json(*redrive) == {"group": group, "sent": 0, "waiting": 0}
    until(lambda: len(tidemark.messages(topic)) == 2 * COUNT)
    first, again = tidemark.messages(topic)[:COUNT], tidemark.messages(topic)[COUNT:]
    names = ("body", "tag", "keys", "properties", "reconsume_times")
    assert sorted([[one[name] for name in names] for one in again], key=str) == sorted(
        [[one[name] for name in names] for one in first], key=str
    )


def test_a_repeated_redrive_stores_nothing_twice(tidemark: Tidemark, failed: tuple[str, str]) -> None:
    """This is the state after a crash between sends and commit: the offsets are set back by hand."""
    topic, group = failed
    assert tidemark.json("dlq", "redrive", group, "--yes")["sent"] == COUNT
    back = ("--topic", f"%DLQ%{group}", "--to", "earliest", "--yes")
    for name in (f"{group}-redrive", f"{group}-redriven"):  # a crash leaves neither of a redrive's two records
        assert tidemark.run("group", "reset", name, *back).returncode == ExitStatus.OK
    assert tidemark.json("dlq", "redrive", group, "--yes") == {"group": group, "sent": 0, "waiting": 0}
    assert tidemark.produce(topic, given="end\n") == 1
    assert len(tidemark.messages(topic)) == 2 * COUNT + 1


def test_dead_letters_can_be_sent_to_another_topic(tidemark: Tidemark, failed: tuple[str, str]) -> None:
    """A confirmation is needed."""
    topic, group = failed
    other = f"{topic}-other"
    tidemark.json("topic", "create", other, "--queues", 1)
    assert tidemark.run("dlq", "redrive", group, "--to", other, given="n\n").returncode == ExitStatus.FAILED
    assert _of(tidemark, group)["waiting"] == COUNT
    assert tidemark.json("dlq", "redrive", group, "--to", other, "--yes")["sent"] == COUNT
    until(lambda: len(tidemark.messages(other)) == COUNT)


def test_a_dead_letter_without_an_origin_topic_is_reported(tidemark: Tidemark) -> None:
    """The redrive needs --to."""
    group = f"stranger-{uuid.uuid4().hex[:8]}"
    tidemark.produce(f"%DLQ%{group}", given="x\n")
    done = tidemark.run("dlq", "redrive", group, "--yes")
    assert (done.returncode, b"give --to" in done.stderr) == (ExitStatus.REJECTED, True)
    assert _of(tidemark, group)["waiting"] == 1


@pytest.mark.parametrize("verb", ["show", "redrive"])
def test_a_group_without_dead_letters_is_reported(tidemark: Tidemark, verb: str) -> None:
    """Standard output stays empty."""
    done = tidemark.run("dlq", verb, "no-such-group")
    assert (done.returncode, done.stdout) == (ExitStatus.NOT_FOUND, b""), done


def test_a_redrive_after_a_reset_stores_dead_letters_again(tidemark: Tidemark, failed: tuple[str, str]) -> None:
    topic, group = failed
    redrive = ("dlq", "redrive", group, "--yes")
    assert tidemark.json(*redrive)["sent"] == COUNT
    tidemark.run("group", "reset", f"{group}-redrive", "--topic", f"%DLQ%{group}", "--to", "earliest", "--yes")
    assert tidemark.json(*redrive) == {"group": group, "sent": COUNT, "waiting": 0}
    until(lambda: len(tidemark.messages(topic)) == 3 * COUNT)
