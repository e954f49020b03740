"""Members delete their own old files, and a new member begins where the writer's log does."""

from __future__ import annotations

import shutil

import pytest

from tests.replication.conftest import MakeElected
from tests.replication.elected import TOPIC
from tests.replication.members import until
from tests.replication.nemesis.faults import LinkedMembers
from tidemark.client import Message, Query
from tidemark.client.wire.topic_admin import Topics

pytestmark = [pytest.mark.integration, pytest.mark.slow]
SEGMENT_BYTES = 1 << 16


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


def test_old_files_go_on_every_member_and_an_empty_member_needs_none_of_them(make_elected: MakeElected) -> None:
    members = make_elected(
        with_readers=True,
        TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES=str(SEGMENT_BYTES),
        TIDEMARK_RETENTION_HOURS="0.001",
        TIDEMARK_RETENTION_INTERVAL_MS="200",
        TIDEMARK_EPOCH_MS="500",
    )
    members.start()
    writer = members.until_writer()
    members.until_in_sync(writer, 3)
    with Topics(members.writers) as topics, members.producer(writer) as producer:
        topics.create(TOPIC, queues=1)
        for number in range(60):
            producer.send_batch([Message(TOPIC, f"{number:03d}.{n:03d}".encode() + bytes(1_000)) for n in range(20)])
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
