"""The judge of the nemesis finds each broken rule, by faults that are aimed at it."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable

import pytest

from tests.replication.conftest import MakeElected
from tests.replication.load import stored_messages
from tests.replication.nemesis.clients import clients
from tests.replication.nemesis.faults import LinkedMembers
from tests.replication.nemesis.history import History, findings
from tests.replication.test_nemesis import heal, prepare
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.exhaustive]


def replicas(members: LinkedMembers) -> tuple[str, list[str]]:
    """Return the writer, and the replicas."""
    writer = members.until_writer()
    return writer, [name for name in members.ports if name != writer]


def lose(members: LinkedMembers, *names: str) -> None:
    """End members, and their disks."""
    for name in names:
        members.kill_machine(name)
        shutil.rmtree(members.folder(name))


def lose_the_only_copy(members: LinkedMembers) -> None:
    writer, others = replicas(members)
    for name in others:
        members.signal(name, signal.SIGSTOP)
    time.sleep(1)
    lose(members, writer)
    for name in others:
        members.signal(name, signal.SIGCONT)
    members.launch(writer)


def leave_only_the_one_that_lacks(members: LinkedMembers) -> None:
    writer, (other, behind) = replicas(members)
    members.signal(behind, signal.SIGSTOP)
    until(lambda: members.status(writer).in_sync == 2, "it has left the set")
    time.sleep(1)
    lose(members, writer, other)
    members.signal(behind, signal.SIGCONT)
    until(lambda: members.writer() == behind, "it is elected")
    members.launch(writer, other)


def kill_again_and_again(members: LinkedMembers) -> None:
    for _ in range(4):
        writer = members.until_writer()
        members.kill(writer)
        members.until_writer()
        members.launch(writer)
        time.sleep(2)


@pytest.mark.parametrize(
    ("mutant", "fault", "expected"),
    [
        ("commits_alone", lose_the_only_copy, "lost"),
        ("elects_anybody", leave_only_the_one_that_lacks, "lost"),
        ("forgets_repeats", kill_again_and_again, "doubled"),
    ],
)
def test_a_broken_rule_is_found(
    make_elected: MakeElected, mutant: str, fault: Callable[[LinkedMembers], None], expected: str
) -> None:
    members = make_elected(TIDEMARK_REPLICA_TIMEOUT_MS="1000")
    members.program = ["tests.replication.nemesis.mutants", mutant]
    prepare(members)
    history = History()
    with clients(members.writers, {}, history):
        time.sleep(2)
        fault(members)
        heal(members)
        time.sleep(1)
    members.until_level(*members.ports)
    members.stop()
    found = findings(history, stored_messages(members.folder("a")))
    assert any(finding.startswith(expected) for finding in found), found[:5]
