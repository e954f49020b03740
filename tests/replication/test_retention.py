"""Members delete their own old files, and a new member begins where the writer's log does."""

from __future__ import annotations

import asyncio
import re
import shutil
import time

import pytest
from typer.testing import CliRunner

from services.writer.replication.messages import Acknowledged, Hello
from services.writer.rpc.member_channel import open_stream
from tests.replication.conftest import MakeElected
from tests.replication.elected import TOPIC
from tests.replication.nemesis.faults import LinkedMembers
from tests.waiting import until
from tidemark.cli.main import app
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.client import Message, Query
from tidemark.client.wire.topic_admin import Topics
from tidemark.tls.credentials import Credentials

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.exhaustive]
SEGMENT_BYTES = 1 << 16
RETENTION_S = 3.6
DELETING = {
    "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(SEGMENT_BYTES),
    "TIDEMARK_RETENTION_HOURS": str(RETENTION_S / 3600),
    "TIDEMARK_RETENTION_INTERVAL_MS": "200",
    "TIDEMARK_EPOCH_MS": "500",
}


def starts(members: LinkedMembers, name: str) -> list[int]:
    return sorted(int(file.name) for file in (members.folder(name) / "commitlog").iterdir())


def shown(members: LinkedMembers, name: str) -> tuple[int, list[str]]:
    """Return the first offset of the queue, and the messages from it, as a member shows them."""
    with Query(f"http://127.0.0.1:{members.query_ports[name]}") as query:
        first = query.queue(TOPIC, 0)["min_offset"]
        bodies: list[str] = []
        offset = first
        while page := query.pull(TOPIC, 0, offset, body_encoding="utf8")["messages"]:
            bodies += [message["body"][:7] for message in page]
            offset = page[-1]["queue_offset"] + 1
        return first, bodies


def send(members: LinkedMembers, writer: str) -> None:
    """Fill about 20 files."""
    with Topics(members.writers) as topics, members.producer(writer) as producer:
        topics.create(TOPIC, queues=1)
        for number in range(60):
            producer.send_batch([Message(TOPIC, f"{number:03d}.{n:03d}".encode() + bytes(1_000)) for n in range(20)])


def test_old_files_go_on_every_member_and_an_empty_member_needs_none_of_them(make_elected: MakeElected) -> None:
    members = make_elected(with_readers=True, **DELETING)
    members.start()
    writer = members.until_all_in_sync()
    send(members, writer)
    for name in members.ports:
        until(lambda name=name: starts(members, name)[0] > 0, f"{name} has deleted files", found=members.found)  # type: ignore[misc]
    lost = next(name for name in members.ports if name != writer)
    members.kill_machine(lost)
    shutil.rmtree(members.folder(lost))
    members.start(lost)
    members.until_in_sync(writer, 3)
    members.until_level(*members.ports)
    with Query(f"http://127.0.0.1:{members.query_ports[lost]}") as query:
        until(lambda: not query.watermark()["lag_bytes"] and query.watermark()["watermark"], "it has indexed its log")
    assert starts(members, lost)[0] > 0
    (first, bodies), (first_of_writer, bodies_of_writer) = shown(members, lost), shown(members, writer)
    assert bodies
    assert bodies[-1] == bodies_of_writer[-1] == "059.019"
    later = max(first, first_of_writer)
    assert bodies[later - first :] == bodies_of_writer[later - first_of_writer :]
    members.group(writer).hand_over(lost)
    with members.producer(lost) as producer:
        assert producer.send(TOPIC, b"next").queue_offset == 60 * 20


def test_files_are_kept_for_a_member_that_is_away(make_elected: MakeElected) -> None:
    """The writer keeps them, and so does the replica that may become the writer."""
    members = make_elected(with_readers=True, **DELETING)
    members.start()
    writer = members.until_all_in_sync()
    away, other = (name for name in members.ports if name != writer)
    members.kill_machine(away)
    send(members, writer)
    time.sleep(2 * RETENTION_S)
    assert starts(members, writer)[0] == starts(members, other)[0] == 0
    members.start(away)
    members.until_all_in_sync()
    for name in members.ports:
        until(lambda name=name: starts(members, name)[0] > 0, f"{name} has deleted files", found=members.found)  # type: ignore[misc]


def test_files_are_kept_for_an_empty_member_from_its_first_message_on(make_elected: MakeElected) -> None:
    """An earlier life of it, with another folder, had everything, and a stream of that life has not ended yet."""
    retention_s = 10
    members = make_elected(with_readers=True, **{**DELETING, "TIDEMARK_RETENTION_HOURS": str(retention_s / 3600)})
    members.start()
    writer = members.until_all_in_sync()
    lost = next(name for name in members.ports if name != writer)
    send(members, writer)
    members.kill_machine(lost)
    described = members.described(writer)
    assert described is not None
    end = described.end_offset
    assert end

    async def follow(life: int, start: int, acknowledged: int | None) -> None:
        """Ask for the log in the member's name, and acknowledge *acknowledged* for longer than files are kept."""
        async with open_stream(members.address(writer), Credentials()) as link:
            await link.send(Hello("", lost, f"{lost}.{life:032x}", 0, start, 0, SEGMENT_BYTES))
            await link.receive()
            await link.send(start)
            for _ in range(4 * (retention_s + 2)):
                if acknowledged is not None:
                    await link.send(Acknowledged(acknowledged, 0, 1 << 30))
                await asyncio.sleep(0.25)

    async def both() -> None:
        former = asyncio.create_task(follow(1, end, end))
        await asyncio.sleep(0.5)
        await asyncio.gather(former, follow(2, 0, None))

    asyncio.run(both())
    assert starts(members, writer)[0] == 0


def test_a_member_that_is_away_for_too_long_is_not_waited_for(make_elected: MakeElected) -> None:
    kept = 4 * SEGMENT_BYTES
    members = make_elected(with_readers=True, **DELETING, TIDEMARK_REPLICA_RETAIN_BYTES=str(kept))
    members.start()
    writer = members.until_all_in_sync()
    away = next(name for name in members.ports if name != writer)
    with members.producer(writer) as producer:
        producer.send("first", b"all members have it")
    members.until_level(*members.ports)
    members.kill_machine(away)
    send(members, writer)
    for name in members.ports.keys() - {away}:
        until(lambda name=name: starts(members, name)[0] > 0, f"{name} has deleted files")  # type: ignore[misc]
        time.sleep(RETENTION_S)
        files = starts(members, name)
        assert files[-1] - files[0] >= kept - SEGMENT_BYTES
    members.start(away)
    until(lambda: fault_of(members, writer, away), "it is refused")
    shown = CliRunner().invoke(app, ["group", "status", "--writer", members.address(writer)])
    assert shown.exit_code == ExitStatus.FAILED
    assert re.search(f"{away} does not follow the writer: .* start the replica with an empty folder", shown.output)
    members.kill_machine(away)
    shutil.rmtree(members.folder(away))
    members.start(away)
    members.until_all_in_sync()
    assert not fault_of(members, writer, away)


def fault_of(members: LinkedMembers, writer: str, name: str) -> str:
    return next(member.fault for member in members.status(writer).members if member.name == name)
