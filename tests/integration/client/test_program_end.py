"""Programs that end without `close`, and programs that fork."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

from tests.integration.client.stored import records
from tidemark.client import Producer
from tidemark.local.local_stack import LocalStack

pytestmark = pytest.mark.integration
COUNT = 3_000
NO_WRITER = "127.0.0.1:1"

PROGRAM = """
import sys
from tidemark.client import Producer
writer, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
{body}
"""
SENDING = """
producer = Producer(writer, timeout_s=20{options})
for number in range(count):
    producer.{send}(topic, b"x" * 100)
{end}
"""
ASYNCHRONOUS = """
import asyncio
from tidemark.client import AsyncProducer

async def run():
    producer = AsyncProducer(writer, timeout_s=20)
    for number in range(count):
        await producer.send_oneway(topic, b"x" * 100)

asyncio.run(run())
"""
SEVERAL = """
producers = [Producer(writer, timeout_s=20, accumulate=number % 2 == 0) for number in range(4)]
for number in range(count):
    producers[number % 4].send_async(topic, b"x" * 100)
"""
OUT_OF_SCOPE = """
def run():
    producer = Producer(writer, timeout_s=20)
    for number in range(count):
        producer.send_async(topic, b"x" * 100)

run()
"""
CHILD = """
import multiprocessing
def run():
    producer = Producer(writer, timeout_s=20)
    for number in range(count):
        producer.send_async(topic, b"x" * 100)

process = multiprocessing.get_context("fork").Process(target=run)
process.start()
process.join()
"""


def sending(send: str = "send_async", options: str = "", end: str = "") -> str:
    return SENDING.format(send=send, options=options, end=end)


def run(body: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM.format(body=body), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (sending(), 0),
        (sending("send_oneway"), 0),
        (sending(options=", accumulate=True"), 0),
        (sending(end="sys.exit(3)"), 3),
        (sending(end="1 / 0"), 1),
        (ASYNCHRONOUS, 0),
        (SEVERAL, 0),
        (OUT_OF_SCOPE, 0),
        (CHILD, 0),
    ],
    ids=["end", "one-way", "accumulated", "exit", "exception", "asynchronous", "several", "out of scope", "child"],
)
def test_a_program_that_ends_without_close_flushes(writer: LocalStack, body: str, code: int) -> None:
    topic = f"end-{uuid.uuid4().hex[:8]}"
    done = run(body, writer.writer_address, topic, str(COUNT))
    assert done.returncode == code, done.stderr
    assert "given up" not in done.stderr
    assert len(records(writer.writer_address, topic)) == COUNT


@pytest.mark.parametrize("send", ["send_async", "send_oneway"])
def test_a_program_that_ends_logs_the_number_of_messages_given_up(send: str) -> None:
    """The end takes `timeout_s` at most."""
    body = f"""
producer = Producer(writer, timeout_s=1)
for number in range(count):
    producer.{send}(topic, b"x", queue_id=0)
"""
    done = run(body, NO_WRITER, "t", "7")
    assert done.returncode == 0
    assert "7 messages were given up when the program ended without Producer.close()" in done.stderr
    assert "WriterUnreachableError" in done.stderr


def test_a_producer_that_is_closed_logs_the_number_of_messages_given_up() -> None:
    body = """
with Producer(writer, timeout_s=1) as producer:
    for number in range(count):
        producer.send_oneway(topic, b"x", queue_id=0)
"""
    assert "7 messages were given up when the producer was closed" in run(body, NO_WRITER, "t", "7").stderr


def test_flush_and_close_report_a_send_that_failed() -> None:
    """Each failure is reported once: one that comes while `flush` waits, and an earlier one."""
    producer = Producer(NO_WRITER, timeout_s=0.5)
    assert producer.flush()
    producer.send_async("t", b"x", queue_id=0)
    assert not producer.flush()
    assert producer.flush()
    producer.send_async("t", b"x", queue_id=0).exception()
    assert not producer.flush()
    producer.send_oneway("t", b"x", queue_id=0)
    assert not producer.close()


FORKED = """
import os, time
from tidemark.client import AsyncProducer, Message
from tidemark.errors import ForkedProcessError
import asyncio, pyarrow

producer = Producer(writer, timeout_s=5)
asynchronous = AsyncProducer(writer, timeout_s=5)
producer.send(topic, b"parent")
reader, pipe = os.pipe()
child = os.fork()
if child == 0:
    raised = 0
    for call in (
        lambda: producer.send(topic, b"x"),
        lambda: producer.send_async(topic, b"x"),
        lambda: producer.send_oneway(topic, b"x"),
        lambda: producer.send_batch([Message(topic, b"x")]),
        lambda: producer.send_packed_async(topic, b"x"),
        lambda: producer.send_table(pyarrow.table({"b": ["x"]}), topic, body="b"),
        lambda: producer.queues(topic),
        lambda: producer.topics,
        lambda: producer.log_info(),
        lambda: producer.flush(),
        lambda: asyncio.run(asynchronous.send(topic, b"x")),
    ):
        try:
            call()
        except ForkedProcessError as error:
            assert str(error.facts["made_in"]) == str(os.getppid()) and "fork" in str(error)
            raised += 1
    producer.close()
    with Producer(writer, timeout_s=5) as own:
        own.send(topic, b"child")
    os.write(pipe, str(raised).encode())
    os._exit(0)
_, status = os.waitpid(child, 0)
print(status, os.read(reader, 10).decode(), producer.send(topic, b"parent again").count)
producer.close()
"""


def test_a_producer_created_before_a_fork_is_refused_in_the_child(writer: LocalStack) -> None:
    """A producer of the child works, and so does the parent's afterwards."""
    topic = f"fork-{uuid.uuid4().hex[:8]}"
    with Producer(writer.writer_address) as producer:
        producer.topics.create(topic, queues=1)
    done = run(FORKED, writer.writer_address, topic, "0")
    assert done.stdout.split() == ["0", "11", "1"], done.stderr
    assert [record.body for record in records(writer.writer_address, topic)] == [b"parent", b"child", b"parent again"]
