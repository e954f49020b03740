"""A type checker reads the annotations of the installed wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.integration.package.conftest import Installed

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PROGRAM = """
import asyncio

from tidemark.client import AsyncProducer, Consumer, Message, Producer, SendResult

with Producer("127.0.0.1:8081", timeout_s=5) as producer:
    sent: SendResult = producer.send("orders", b"x", key="k", tag="A", properties={"n": "1"})
    producer.send_batch([Message("orders", "x", keys=["k"])], request_id="job")
    reveal_type(sent.message_ids)
with Consumer("orders", group="g") as consumer:
    for message in consumer.poll(1.0):
        print(message.body.decode(), message.tag)


async def run() -> int:
    async with AsyncProducer() as producer:
        return (await producer.send(Message("orders", b"x"))).queue_offset


print(asyncio.run(run()))
"""
MISTAKES = """
from tidemark.client import Message, Producer

producer = Producer()
producer.send("orders", b"x", kye="k")
producer.send("orders", b"x", key=1)
producer.send("orders", b"x", properties={"n": 1})
producer.send_batch([Message("orders", b"x")], tag="A")
Message("orders", b"x", tags="A")
producer.send("orders", b"x").queue_ofset
"""


def checked(client: Installed, program: str, folder: Path) -> list[str]:
    """Return mypy's lines on *program*, against the packages of *client*."""
    file = folder / "program.py"
    file.write_text(program)
    options = ("--strict", "--python-executable", str(client.python), "--config-file", "", "--cache-dir", "cache")
    command = (sys.executable, "-m", "mypy", *options, file.name)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def test_a_program_is_checked_against_the_wheel(client: Installed, tmp_path: Path) -> None:
    lines = checked(client, PROGRAM, tmp_path)
    assert lines[-1] == "Success: no issues found in 1 source file", lines
    assert 'Revealed type is "typing.Sequence[str]"' in lines[0]


def test_mistakes_of_a_program_are_found_against_the_wheel(client: Installed, tmp_path: Path) -> None:
    """Each wrong line gives exactly one error."""
    lines = [line for line in checked(client, MISTAKES, tmp_path) if ": error:" in line]
    assert [int(line.split(":")[1]) for line in lines] == [5, 6, 7, 8, 9, 10], lines


def test_every_package_of_the_wheel_is_marked_as_typed(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"{package}/py.typed" for package in ("tidemark", "pyspark_tidemark", "tidemark_services")} <= names
