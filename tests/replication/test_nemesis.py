"""Random faults while four kinds of clients work: all members keep each acknowledged message, once, at its offset."""

from __future__ import annotations

import os
import time

import pytest

from tests.replication.conftest import MakeElected
from tests.replication.load import stored_messages
from tests.replication.nemesis.clients import BATCHES, COMPARED, QUEUES, SINGLES, clients
from tests.replication.nemesis.faults import LinkedMembers, Nemesis
from tests.replication.nemesis.history import History, findings
from tests.waiting import until
from tidemark.client import Query
from tidemark.client.wire.topic_admin import Topics
from tidemark.index.check.scope import whole_store
from tidemark.index.check.store import check_store
from tidemark.store.paths import StorePaths

SEEDS = [int(seed) for seed in os.environ.get("NEMESIS_SEEDS", "1").split(",")]
FAULTS = os.environ.get("NEMESIS_FAULTS", "").split()
SECONDS = float(os.environ.get("NEMESIS_SECONDS", "20"))
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(SECONDS + 400)]


@pytest.fixture
def members(make_elected: MakeElected) -> LinkedMembers:
    members = make_elected(
        etcds=3,
        with_readers=True,
        TIDEMARK_REPLICA_TIMEOUT_MS="1000",
        TIDEMARK_COMPARE_INTERVAL_S="1",
        TIDEMARK_INDEX_SLOTS="500",  # a hole of a larger file on a full tmpfs would be fatal to its readers
        TIDEMARK_INDEX_ENTRIES="2000",
    )
    members.mount_small_disks()
    return members


def prepare(members: LinkedMembers) -> None:
    members.start()
    members.until_all_in_sync()
    with Topics(members.writers, timeout_s=60) as topics:
        topics.create(SINGLES, queues=QUEUES)
        topics.create(BATCHES, queues=QUEUES)
        topics.create(COMPARED, queues=1)


def heal(members: LinkedMembers) -> None:
    """End all faults, and wait until all members are in sync."""
    members.network.heal()
    for name in members.ports:
        if not members.described(name):
            members.stop_gently(name)
            members.launch(name)
    until(members.is_whole, "all members are in sync", found=members.found)


def settle(members: LinkedMembers) -> None:
    """Wait until all members have the same log, and have indexed it."""
    members.until_level(*members.ports)
    for name, port in members.query_ports.items():
        with Query(f"http://127.0.0.1:{port}") as query:
            until(
                lambda query=query: not query.watermark()["lag_bytes"],  # type: ignore[misc]
                f"{name} has indexed its log",
                found=lambda: f"ended: {members.ended_readers()}",
            )


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_is_lost_under_random_faults(members: LinkedMembers, seed: int) -> None:
    prepare(members)
    history, nemesis = History(), Nemesis(members, seed, FAULTS)
    urls = {name: f"http://127.0.0.1:{port}" for name, port in members.query_ports.items()}
    with clients(members.writers, urls, history):
        nemesis.run(SECONDS)
        heal(members)
        time.sleep(1)
    settle(members)
    nemesis.until_repaired()
    members.stop_readers()
    members.stop()
    made = f"seed {seed}, {history.acknowledged()} acknowledged, {len(history.read)} read, faults {nemesis.done}"
    (members.root / "made").write_text(made)
    assert findings(history, stored_messages(members.folder("a"))) == [], made
    assert history.acknowledged() > 50, made
    logs, queues = ([find(name) for name in members.ports] for find in (members.log_files, members.queue_files))
    assert all(log == logs[0] for log in logs)
    assert all(queue == queues[0] for queue in queues)
    for name in members.ports:
        paths = StorePaths(members.folder(name))
        assert not check_store(paths, whole_store(paths)).findings, f"{name}: {made}"
