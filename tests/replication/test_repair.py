"""Damaged bytes of one member's log are replaced by those of the others, while the group works."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import httpx
import pytest

from tests.replication.conftest import Make, MakeElected
from tests.replication.elected import TOPIC
from tests.replication.members import Members
from tests.replication.nemesis.faults import LinkedMembers
from tests.waiting import until
from tidemark.client import Message, Producer, Query
from tidemark.client.wire.topic_admin import Topics
from tidemark.replication.repairs import read_repairs
from tidemark.store.paths import StorePaths

pytestmark = [pytest.mark.integration, pytest.mark.slow]
SEGMENT_BYTES = 1 << 16
BODY_BYTES = 1_000


def fill(members: LinkedMembers) -> str:
    """Start the members and send 200 messages; return the writer's name."""
    members.start()
    writer = members.until_all_in_sync()
    with Topics(members.writers) as topics, members.producer(writer) as producer:
        topics.create(TOPIC, queues=1)
        send(producer, 10)
    members.until_level(*members.ports)
    for name in members.ports:
        until(lambda name=name: shown(members, name) == 200, f"{name} shows everything", found=members.found)  # type: ignore[misc]
    return writer


def send(producer: Producer, batches: int) -> None:
    """Send batches of 20 messages."""
    for number in range(batches):
        bodies = [f"{number:03d}.{n:03d}".encode().ljust(BODY_BYTES, b"b") for n in range(20)]
        producer.send_batch([Message(TOPIC, body, properties={"colour": "blue"}) for body in bodies])


def shown(members: Members, name: str) -> int:
    """Return the number of messages that a member shows from the beginning without a gap."""
    with Query(f"http://127.0.0.1:{members.query_ports[name]}") as query:
        offset = 0
        try:
            while page := query.pull(TOPIC, 0, offset)["messages"]:
                if page[0]["queue_offset"] != offset:
                    break
                offset = page[-1]["queue_offset"] + 1
        except LookupError:
            return 0
        return offset


def log_file(members: Members, name: str, number: int) -> Path:
    return sorted((members.folder(name) / "commitlog").iterdir())[number]


def flip(path: Path, at: int) -> None:
    """Flip a bit, as a bad sector would."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.pwrite(descriptor, bytes([os.pread(descriptor, 1, at)[0] ^ 4]), at)
    finally:
        os.close(descriptor)


def place_of(path: Path, text: bytes) -> int:
    return path.read_bytes().index(text, 20_000)


def log_hashes(members: Members, name: str) -> list[str]:
    files = sorted((members.folder(name) / "commitlog").iterdir())
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files[:3]]  # the later ones may be prepared


def test_flipped_bits_are_found_and_repaired_on_every_member(make_elected: MakeElected) -> None:
    """In a body, which has a checksum, and in properties, which have none: there two members outvote the third."""
    members = make_elected(
        with_readers=True,
        TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES=str(SEGMENT_BYTES),
        TIDEMARK_COMPARE_INTERVAL_S="0.5",
    )
    writer = fill(members)
    right = log_hashes(members, writer)
    texts = dict(zip(members.ports, (b"bbbbbbbb", b"blue", b"\xda\xa3\x20\xa7"), strict=True))  # body, property, magic
    for number, (name, text) in enumerate(texts.items()):
        file = log_file(members, name, number % 2)
        flip(file, place_of(file, text))
    for name in members.ports:
        until(lambda name=name: log_hashes(members, name) == right, f"{name} is repaired", found=members.found)  # type: ignore[misc]
        folder = StorePaths(members.folder(name)).replication
        until(lambda folder=folder: read_repairs(folder), f"{name} has noted that")  # type: ignore[misc]
        repairs = read_repairs(folder)
        assert [(repair.size, repair.source != name) for repair in repairs] == [(1, True)]
        assert shown(members, name) == 200
    with members.producer(writer) as producer:
        assert producer.send(TOPIC, b"next").queue_offset == 200


def test_of_two_members_the_one_with_the_noted_checksum_is_right(make: Make) -> None:
    members = make("ab", TIDEMARK_COMPARE_INTERVAL_S="0.5", TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES=str(SEGMENT_BYTES))
    members.start()
    members.promote("a")
    members.until_in_sync("a", 2)
    with members.producer("a") as producer:
        send(producer, 60)
    noted = [StorePaths(members.folder(name)).replication / "checksums" for name in members.ports]
    until(lambda: all(file.stat().st_size for file in noted), "the members agree", found=members.found)
    right = log_hashes(members, "b")
    for number, name in enumerate(members.ports):
        file = log_file(members, name, number)
        flip(file, place_of(file, b"blue"))
        until(lambda name=name: log_hashes(members, name) == right, f"{name} is repaired", found=members.found)  # type: ignore[misc]


@pytest.mark.exhaustive
def test_damage_that_the_pipeline_finds_is_repaired_at_once(make_elected: MakeElected) -> None:
    members = make_elected(
        with_readers=True,
        TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES=str(SEGMENT_BYTES),
        TIDEMARK_COMPARE_INTERVAL_S="0",
    )
    writer = fill(members)
    right = log_hashes(members, writer)
    name = next(name for name in members.ports if name != writer)
    members.stop_readers()
    derived = StorePaths(members.folder(name))
    for folder in (derived.consume_queue, derived.index, derived.indexer):
        for file in sorted(folder.rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
    file = log_file(members, name, 1)
    members.signal(name, signal.SIGSTOP)
    flip(file, place_of(file, b"bbbbbbbb"))
    members.start_readers(name)
    until(lambda: list(derived.indexer.glob("ledger-*")), "the pipeline has found the damage", found=members.found)
    members.signal(name, signal.SIGCONT)
    until(lambda: log_hashes(members, name) == right, "the log is repaired", found=members.found)
    url = f"http://127.0.0.1:{members.query_ports[name]}"
    until(lambda: members.has_query(name), "the query service answers")
    until(lambda: httpx.get(f"{url}/v1/corruptions").json()["total"] == 0, "the ledger has no damage")
    until(lambda: shown(members, name) == 200, "everything is shown")
