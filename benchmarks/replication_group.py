"""A replication group whose members all run on this machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.producers import PRODUCERS, TIMEOUT_S
from benchmarks.stack import environment
from tidemark.client import Producer, SendStatus
from tidemark.client.wire.group_admin import ReplicationGroup
from tidemark.errors import StoreError
from tidemark.local.local_stack import LocalStack, free_port
from tidemark.settings.engine import Engine

TOPIC = "bench"
MANUAL = "manual"
_NAMES = "abc"


@contextlib.contextmanager
def group(
    data: Path, replicas: int, services: tuple[str, ...], *, min_in_sync: int | None = None, group_store: str = MANUAL
) -> Iterator[dict[str, LocalStack]]:
    """Run *services* of each member; yield the members by name, which are in sync, and have a topic.

    replicas     0: a single node
    min_in_sync  default: all members
    group_store  manual: the first member is the writer
    """
    names = _NAMES[: replicas + 1]
    ports = {name: free_port() for name in names}
    settings = {
        "TIDEMARK_REPLICATION": "sync" if replicas else "off",
        "TIDEMARK_GROUP_STORE": group_store,
        "TIDEMARK_GROUP_MEMBERS": ",".join(f"{name}=127.0.0.1:{port}" for name, port in ports.items()),
        "TIDEMARK_MIN_IN_SYNC": str(min_in_sync or replicas + 1),
        "TIDEMARK_REPLICA_TIMEOUT_MS": "60000",  # producers keep 64 MiB in flight
        "TIDEMARK_PIPELINE": Engine.PLAIN,
    }
    members = {
        name: LocalStack(
            data / name,
            writer_port=port,
            environment={**environment("sync", settings), "TIDEMARK_MEMBER": name},
            services=services,
        )
        for name, port in ports.items()
    }
    try:
        for member in members.values():
            member.start()
        if replicas:
            if group_store == MANUAL:
                ReplicationGroup(members["a"].writer_address).promote("a")
            until_in_sync(members)
        with Producer(addresses(members), timeout_s=TIMEOUT_S) as producer:
            producer.topics.create(TOPIC, queues=PRODUCERS)
        yield members
    finally:
        for member in members.values():
            member.stop()


def addresses(members: Mapping[str, LocalStack]) -> str:
    """Return the members' addresses, as a producer takes them."""
    return "|".join(member.writer_address for member in members.values())


def until_in_sync(members: Mapping[str, LocalStack]) -> str:
    """Wait until one of *members* writes and as many are in sync; return it. Raises RuntimeError after a while."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        for member in members.values():
            with contextlib.suppress(StoreError):  # it does not answer while its role changes
                status = ReplicationGroup(member.writer_address, timeout_s=2).status()
                if status.writer is not None and status.writer in members and status.in_sync >= len(members):
                    return status.writer
        time.sleep(0.05)
    raise RuntimeError(f"{len(members)} members are not in sync after {TIMEOUT_S:g} s")


def time_send(producer: Producer) -> float:
    """Send one message, and return the seconds until it was acknowledged, perhaps as one that is stored already."""
    before = time.perf_counter()
    result = producer.send(TOPIC, b"x" * 100, queue_id=0)
    took_s = time.perf_counter() - before
    if result.status is not SendStatus.PUT_OK:
        raise RuntimeError(f"a message was answered {result.status}")
    return took_s
