"""A group that elects its writer by a real etcd: its members are killed, paused, and cut off."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.replication.conftest import TTL_MS, MakeElected
from tests.replication.elected import TOPIC
from tests.replication.load import Load, require_stored
from tests.replication.nemesis.faults import ETCD, LinkedMembers
from tests.waiting import until
from tidemark.client.wire.topic_admin import Topics
from tidemark.errors import ArgumentIllegalError, DeadlineExceededError, NotLeaderError
from tidemark.replication.etcd.gateway import EtcdGateway, encoded

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture
def members(make_elected: MakeElected) -> LinkedMembers:
    return make_elected()


def started(members: LinkedMembers) -> str:
    members.start()
    return members.until_all_in_sync()


def require_same_logs(members: LinkedMembers, acknowledged: dict[str, tuple[int, int]]) -> None:
    members.stop()
    logs = [members.log_files(name) for name in members.ports]
    assert all(log == logs[0] for log in logs)
    require_stored(members.folder("a"), acknowledged)


def test_the_first_election_waits_for_all_members(members: LinkedMembers) -> None:
    """A member that is not asked may have the only log with messages."""
    members.start("a", "b")
    until(lambda: "first_election_waits" in members.log("a").read_text(), "member a waits")
    assert members.writer() is None
    members.start("c")
    members.until_all_in_sync()


def test_the_member_with_the_longest_log_is_elected_first(members: LinkedMembers) -> None:
    """A single node becomes a group: its messages are kept."""
    alone = {"TIDEMARK_REPLICATION": "off", "TIDEMARK_GROUP_STORE": "manual"}
    members.launch("b", **alone)
    with members.producer("b") as producer:
        sent = producer.send(TOPIC, b"of the single node", keys=["k"])
    members.stop("b")
    assert started(members) == "b"
    require_same_logs(members, {"k": (sent.queue_id, sent.queue_offset)})


def test_a_killed_writer_is_replaced_and_nothing_acknowledged_is_lost(members: LinkedMembers) -> None:
    writer = started(members)
    with members.producer(writer, timeout_s=5) as producer, Load(producer) as load:
        until(lambda: len(load.acknowledged) > 300, "messages are acknowledged")
        members.kill(writer)
        load.stop()
    successor = members.until_writer()
    members.acknowledge(successor)
    members.start(writer)
    members.until_all_in_sync()
    members.until_level(*members.ports)
    require_same_logs(members, load.acknowledged)


@pytest.mark.exhaustive
def test_a_paused_writer_is_replaced_and_stops_when_it_wakes(members: LinkedMembers) -> None:
    writer = started(members)
    with members.producer(writer, timeout_s=5) as producer, Load(producer) as load:
        until(lambda: len(load.acknowledged) > 300, "messages are acknowledged")
        members.signal(writer, signal.SIGSTOP)
        successor = members.until_writer(writer)
        members.acknowledge(successor)
        members.signal(writer, signal.SIGCONT)
        members.until_all_in_sync()
        load.stop()
    members.until_level(*members.ports)
    require_same_logs(members, load.acknowledged)


def test_a_writer_that_stops_is_replaced_at_once(members: LinkedMembers) -> None:
    writer = started(members)
    members.stop(writer)
    began = time.monotonic()
    members.acknowledge(members.until_writer())
    assert time.monotonic() - began < 10  # on a busy machine


def test_a_hand_over_goes_to_the_named_member(members: LinkedMembers) -> None:
    writer = started(members)
    target = next(name for name in reversed(members.ports) if name != writer)
    members.group(writer).hand_over(target)
    members.acknowledge(target)
    members.until_in_sync(target, 3)


def test_no_other_member_is_elected_during_a_hand_over(members: LinkedMembers) -> None:
    """The named member takes the role late, because it reaches etcd only later."""
    writer = started(members)
    target = next(name for name in reversed(members.ports) if name != writer)
    members.network.cut(target, f"{ETCD}0")
    with ThreadPoolExecutor(1) as thread:
        handing = thread.submit(members.group(writer).hand_over, target)
        time.sleep(2)
        assert members.writer(writer) is None, members.found()
        members.network.heal()
        assert handing.result() == 2
    assert members.until_writer() == target
    members.acknowledge(target)


@pytest.mark.exhaustive
def test_a_member_that_cannot_take_the_role_that_it_is_given_is_replaced(members: LinkedMembers) -> None:
    writer = started(members)
    target = next(name for name in reversed(members.ports) if name != writer)
    members.network.cut(target, f"{ETCD}0")
    with pytest.raises(DeadlineExceededError, match=f"member {target} is not the writer yet"):
        members.group(writer).hand_over(target)
    members.acknowledge(members.until_writer(target))


def test_a_writer_without_etcd_stops_and_another_life_of_it_goes_on(members: LinkedMembers) -> None:
    writer = started(members)
    members.acknowledge(writer)
    members.etcd.signal(signal.SIGSTOP)
    until(lambda: members.writer() is None, "the writer has stopped", found=members.found)
    with pytest.raises(NotLeaderError), Topics(members.address(writer)) as topics:
        topics.create("refused")
    members.etcd.signal(signal.SIGCONT)
    members.acknowledge(members.until_writer())


@pytest.mark.exhaustive
def test_a_member_that_lacks_messages_is_not_elected_but_may_be_promoted(members: LinkedMembers) -> None:
    writer = started(members)
    absent, other = (name for name in members.ports if name != writer)
    members.kill(absent)
    members.until_in_sync(writer, 2)
    members.acknowledge(writer)
    members.kill(writer, other)
    members.start(absent)
    until(lambda: "not_electable" in members.log(absent).read_text(), "the member knows that")
    with pytest.raises(ArgumentIllegalError, match=f"member {absent} may lack committed messages"):
        members.promote(absent)
    members.promote(absent, unclean=True)
    assert members.until_writer() == absent


@pytest.mark.exhaustive
def test_an_etcd_that_was_restored_from_a_copy_is_not_believed(members: LinkedMembers) -> None:
    """Its epochs were used already, and its members in sync may lack messages by now."""
    writer = started(members)
    key, first = encoded(b"/tidemark/tidemark/state"), members.status("a").epoch
    with closing(EtcdGateway([f"http://127.0.0.1:{members.etcd.ports[0]}"], timeout_s=5)) as gateway:
        old = gateway.call("/v3/kv/range", {"key": key})["kvs"][0]["value"]
        members.group("a").hand_over(next(name for name in members.ports if name != writer))
        successor = members.until_writer(writer)
        members.acknowledge(successor)
        members.until_all_in_sync()
        members.kill(*members.ports)
        gateway.call("/v3/kv/put", {"key": key, "value": old})
    members.start()
    until(lambda: "group_store_too_old" in members.log("a").read_text(), "the members notice it")
    assert members.writer() is None
    time.sleep(TTL_MS / 1000)  # until the lease of the successor's last life is over
    assert members.promote("a") > first + 1
    members.until_in_sync("a", 3)


def test_a_replica_with_a_full_disk_waits_for_room(members: LinkedMembers) -> None:
    """It can save neither messages nor the state of the group, which has changed because it is behind."""
    members.mount_small_disks()
    if not members.has_small_disks:
        pytest.skip("no tmpfs can be mounted here")
    writer = started(members)
    other = next(name for name in members.ports if name != writer)
    filler = members.fill_disk(other)
    members.acknowledge(writer)
    until(lambda: members.status(writer).in_sync == 2, "it has left the set", found=members.found)
    time.sleep(1)
    members.acknowledge(writer)
    assert members.described(other), members.found()
    filler.unlink()
    members.until_in_sync(writer, 3)
    members.until_level(*members.ports)


def test_while_the_lease_is_held_no_member_is_promoted(members: LinkedMembers) -> None:
    writer = started(members)
    other = next(name for name in members.ports if name != writer)
    with pytest.raises(ArgumentIllegalError, match=f"member {writer} has the writer's lease: use hand-over"):
        members.promote(other, unclean=True)
