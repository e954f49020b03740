"""A group whose writer an operator chooses: real processes, killed, paused and promoted."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.pipeline_runs import build, plan_of, queue_files
from tests.replication.conftest import Make
from tests.replication.load import Load, require_stored, stored_keys
from tests.replication.members import Members
from tests.waiting import refusal, until
from tidemark.client import BATCH_QUEUE, Message, SendStatus
from tidemark.client.wire.topic_admin import Topics
from tidemark.errors import (
    ArgumentIllegalError,
    InSyncReplicasNotEnoughError,
    NotLeaderError,
)
from tidemark.format.elements import Element, encode_elements
from tidemark.store.paths import StorePaths

pytestmark = [pytest.mark.integration, pytest.mark.slow]
TOPIC = "orders"


def started(make: Make, names: str = "abc", **environment: str) -> Members:
    """Return running members, of which a is the writer."""
    members = make(names, **environment)
    members.start()
    members.promote("a", unclean=False)
    members.until_in_sync("a", len(names) if environment.get("TIDEMARK_REPLICATION") != "async" else 1)
    return members


def test_logs_and_queues_of_all_members_are_byte_identical(make: Make) -> None:
    """Single messages, batches and inner batches, while one replica is killed and catches up from the files."""
    members = started(make)
    with members.producer("a") as producer:
        producer.topics.create("inner", attributes=BATCH_QUEUE)
        with Load(producer) as load:
            for number in range(30):
                producer.send_batch([Message("inner", b"%d" % number * 500)] * 20)
                if number == 5:
                    members.kill("c")
                if number == 20:
                    members.start("c")
                time.sleep(0.05)
    members.until_in_sync("a", 3)
    members.until_level("a", "b", "c")
    assert len(load.acknowledged) > 500
    members.stop()
    logs = [members.log_files(name) for name in "abc"]
    assert logs[0] == logs[1] == logs[2]
    assert len(logs[0]) > 3
    for name in "abc":
        require_stored(members.folder(name), load.acknowledged)
        build(plan_of(members.folder(name)))
    queues = [queue_files(members.folder(name)) for name in "abc"]
    assert queues[0] == queues[1] == queues[2]
    assert any(path.startswith("batchconsumequeue") for path in queues[0])


def test_nothing_acknowledged_is_lost_when_the_writer_is_killed_and_another_is_promoted(make: Make) -> None:
    members = started(make)
    with members.producer("a", timeout_s=5) as producer, Load(producer) as load:
        until(lambda: len(load.acknowledged) > 500, "messages are acknowledged")
        members.kill("a")
        load.stop()
    with pytest.raises(ArgumentIllegalError, match="the writer of epoch 65536 is a: stop it"):
        members.promote("b")
    assert members.promote("b", stopped_writer="a") == 2 * 65_536
    members.until_in_sync("b", 2)
    with members.producer("b") as producer, Load(producer) as more:
        until(lambda: len(more.acknowledged) > 300, "messages are acknowledged by the next writer")
        members.start("a")
        members.until_in_sync("b", 3)
    members.until_level("b", "a", "c")
    members.stop()
    assert members.log_files("a") == members.log_files("b") == members.log_files("c")
    require_stored(members.folder("a"), {**load.acknowledged, **more.acknowledged})


def test_a_flood_does_not_interrupt_the_streams(make: Make) -> None:
    """The replicas acknowledge and report at the same time, and are as fast as the flood."""
    members = started(make, TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES=str(64 << 20), TIDEMARK_REPLICA_TIMEOUT_MS="60000")
    packed = encode_elements([Element(bytes(1_000))] * 100)
    with members.producer("a") as producer:
        sent = [producer.send_packed_async(TOPIC, packed, queue_id=0) for _ in range(2_000)]
        assert {future.result().status for future in sent} == {SendStatus.PUT_OK}
    members.until_level("a", "b", "c")
    assert members.status("a").in_sync == 3
    assert "replica_disconnected" not in members.log("a").read_text()


def test_a_writer_that_was_killed_goes_on_in_the_next_epoch(make: Make) -> None:
    members = started(make)
    with members.producer("a", timeout_s=5) as producer, Load(producer) as load:
        until(lambda: len(load.acknowledged) > 200, "messages are acknowledged")
        members.kill("a")
        load.stop()
    members.start("a")
    members.until_in_sync("a", 3)
    assert members.status("b").epoch == 65_537
    with members.producer("a") as producer:
        assert producer.send(TOPIC, b"after").status is SendStatus.PUT_OK
    members.until_level("a", "b", "c")
    members.stop()
    assert members.log_files("a") == members.log_files("b") == members.log_files("c")
    require_stored(members.folder("c"), load.acknowledged)


def test_a_hand_over_is_short_and_loses_nothing(make: Make) -> None:
    members = started(make)
    with members.producer("a", timeout_s=3) as producer, Load(producer) as load:
        until(lambda: len(load.acknowledged) > 200, "messages are acknowledged")
        began = time.monotonic()
        members.group("c").hand_over("b")
        with members.producer("b") as next_producer:
            result = next_producer.send(TOPIC, b"first of b")
        assert time.monotonic() - began < 5  # on a busy machine; BENCH=replication measures it
        load.stop()
    assert result.status is SendStatus.PUT_OK
    members.until_in_sync("b", 3)
    assert refusal(members.address("a"), TOPIC, NotLeaderError).facts["writer"] == members.address("b")
    members.until_level("b", "a", "c")
    members.stop()
    assert members.log_files("a") == members.log_files("b") == members.log_files("c")
    require_stored(members.folder("a"), load.acknowledged)


@pytest.mark.exhaustive
def test_a_replica_that_hangs_delays_appends_until_it_leaves_the_set(make: Make) -> None:
    members = started(make, "abc", TIDEMARK_REPLICA_TIMEOUT_MS="300", TIDEMARK_REPLICA_LAG_MS="2000")
    with members.producer("a") as producer:
        members.signal("b", signal.SIGSTOP)
        assert producer.send(TOPIC, b"1").status is SendStatus.FLUSH_SLAVE_TIMEOUT
        members.until_in_sync("a", 2)
        assert producer.send(TOPIC, b"2").status is SendStatus.PUT_OK
        members.signal("c", signal.SIGSTOP)
        until(lambda: members.status("a").in_sync == 1, "c has left the set")
        refused = refusal(members.address("a"), TOPIC, InSyncReplicasNotEnoughError)
        assert "1 members are in sync, and 2 are needed" in refused.message
        members.signal("b", signal.SIGCONT)
        members.signal("c", signal.SIGCONT)
        members.until_in_sync("a", 3)
        assert producer.send(TOPIC, b"3").status is SendStatus.PUT_OK
    members.until_level("a", "b", "c")
    members.stop()
    assert members.log_files("a") == members.log_files("b") == members.log_files("c")


def test_a_tail_that_was_never_committed_is_cut_when_its_writer_returns(make: Make) -> None:
    members = started(make, "abc", TIDEMARK_REPLICA_TIMEOUT_MS="200", TIDEMARK_REPLICA_LAG_MS="60000")
    with members.producer("a") as producer:
        producer.send(TOPIC, b"committed", keys=["committed"])
        members.until_level("a", "b", "c")
        members.signal("b", signal.SIGSTOP)
        members.signal("c", signal.SIGSTOP)
        for number in range(5):
            sent = producer.send(TOPIC, b"open", keys=[f"open-{number}"])
            assert sent.status is SendStatus.FLUSH_SLAVE_TIMEOUT
    members.kill("a", "b", "c")  # a paused replica would read the messages that wait in its connection
    members.start("b", "c")
    members.promote("c", stopped_writer="a")
    members.until_in_sync("c", 2)
    members.start("a")
    members.until_in_sync("c", 3)
    with members.producer("c") as producer:
        producer.send(TOPIC, b"next", keys=["next"])
    members.until_level("c", "a", "b")
    members.stop()
    assert "uncommitted_tail_cut" in members.log("a").read_text()
    assert members.log_files("a") == members.log_files("b") == members.log_files("c")
    assert set(stored_keys(members.folder("a"))) == {"committed", "next"}


def test_a_copy_of_a_members_folder_is_refused_and_a_new_folder_is_filled(make: Make) -> None:
    members = started(make)
    with members.producer("a") as producer, Load(producer) as load:
        until(lambda: len(load.acknowledged) > 200, "messages are acknowledged")
    members.kill("c")
    shutil.rmtree(members.folder("c"))
    shutil.copytree(members.folder("b"), members.folder("c"))
    (members.folder("c") / "lock").unlink()
    members.start("c")
    until(lambda: "is a copy" in members.log("c").read_text(), "the copy is refused")
    members.kill("c")
    shutil.rmtree(members.folder("c"))
    members.start("c")
    members.until_in_sync("a", 3)
    members.stop()
    assert members.log_files("c") == members.log_files("a")
    require_stored(members.folder("c"), load.acknowledged)


def test_a_lost_member_begins_with_a_backup(make: Make) -> None:
    """Only the bytes after the backup are streamed. The restored folder has a new identity."""
    members = started(make, "ab", TIDEMARK_MIN_IN_SYNC="1")
    lost, backup = members.folder("b"), members.root / "backup"
    with members.producer("a") as producer:
        for _ in range(20):
            producer.send_batch([Message(TOPIC, b"x" * 1_000) for _ in range(20)])
        store_verb("backup", members.folder("a"), backup)
        members.kill("b")
        shutil.rmtree(lost)
        store_verb("restore", backup, lost)
        for number in range(20):
            producer.send(TOPIC, b"%d" % number)
    members.log("b").unlink()
    members.start("b")
    members.until_in_sync("a", 2)
    members.until_level("a", "b")
    (begun,) = re.findall(r'"start": (\d+), "end": \d+, "event": "writer_followed"', members.log("b").read_text())
    assert int(begun) > 400 * 1_000
    members.stop()
    assert members.log_files("a") == members.log_files("b")


def store_verb(verb: str, *folders: Path) -> None:
    subprocess.run([sys.executable, "-m", "tidemark.cli", "store", verb, *map(str, folders)], check=True)


def test_a_writer_alone_says_so_if_that_is_allowed(make: Make) -> None:
    members = started(make, "ab", TIDEMARK_MIN_IN_SYNC="1")
    with members.producer("a") as producer:
        assert producer.send(TOPIC, b"1").status is SendStatus.PUT_OK
        members.kill("b")
        members.until_in_sync("a", 1)
        assert producer.send(TOPIC, b"2").status is SendStatus.SLAVE_NOT_AVAILABLE


def test_async_replicas_follow_and_are_promoted_only_with_the_loss_accepted(make: Make) -> None:
    members = started(make, "ab", TIDEMARK_REPLICATION="async")
    with members.producer("a") as producer:
        assert producer.send(TOPIC, b"1").status is SendStatus.PUT_OK
        members.until_level("a", "b")
        members.kill("b")
        assert producer.send(TOPIC, b"2").status is SendStatus.PUT_OK
        members.start("b")
    members.until_level("a", "b")
    members.kill("a")
    with pytest.raises(ArgumentIllegalError, match="may lack committed messages"):
        members.promote("b", stopped_writer="a")
    members.promote("b", stopped_writer="a", unclean=True)
    with members.producer("b") as producer:
        assert producer.send(TOPIC, b"3").queue_offset >= 0


def test_kf29_topics_with_attributes_are_copied(make: Make) -> None:
    """A slave did not take a topic with attributes, and lost the other topics with it (rocketmq#9403); here the files
    of topics, deletions and offsets are copied as they are.
    """
    members = started(make, "ab")
    with Topics(members.address("a")) as topics:
        topics.create("kept", queues=3, attributes=BATCH_QUEUE)
        topics.create("deleted", queues=2)
        topics.delete("deleted")
    a, b = StorePaths(members.folder("a")), StorePaths(members.folder("b"))
    assert a.topics.read_bytes() == b.topics.read_bytes()
    assert a.tombstones.read_bytes() == b.tombstones.read_bytes()
    a.consumer_offsets.write_text('{"offsetTable":{"kept@group":{"0":5}}}')
    until(b.consumer_offsets.exists, "consumer offsets are copied")
    assert b.consumer_offsets.read_bytes() == a.consumer_offsets.read_bytes()


def test_members_that_do_not_belong_together_are_refused(make: Make) -> None:
    members, others = started(make, "ab", TIDEMARK_MIN_IN_SYNC="1"), started(make, "ab", TIDEMARK_MIN_IN_SYNC="1")
    with others.producer("a") as producer:
        producer.send(TOPIC, b"of another group")
    others.until_level("a", "b")
    others.kill("b")
    others.ports["a"] = members.ports["a"]
    others.launch("b")
    assert others.exit_status("b") == 1
    assert "STORE_CONTRADICTION" in others.log("b").read_text()
    members.kill("b")
    members.launch("b", TIDEMARK_STORE_ROOT=str(members.root / "new"), TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES="8192")
    assert members.exit_status("b") == 1
    assert "CommitLog files of member b have 8192 bytes" in members.log("b").read_text()


def test_a_member_is_not_started_as_a_single_node(make: Make) -> None:
    members = started(make, "ab")
    members.kill("b")
    ended = subprocess.run(
        [sys.executable, "-m", "services.writer"],
        env=members.settings("b", TIDEMARK_REPLICATION="off"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    assert "STORE_CONTRADICTION" in ended.stderr
    assert "belongs to a member of a replication group" in ended.stderr


def test_a_log_that_parts_below_its_committed_end_is_kept(make: Make) -> None:
    """Two writers at once, because an operator said that one was stopped: neither history is cut."""
    members = started(make, "ab", TIDEMARK_MIN_IN_SYNC="1")
    with members.producer("a") as producer:
        producer.send(TOPIC, b"common")
    members.until_level("a", "b")
    members.kill("a")
    members.promote("b", stopped_writer="a")
    with members.producer("b") as producer:
        producer.send(TOPIC, b"of b")
    members.kill("b")
    members.start("a")
    with members.producer("a") as producer:
        producer.send(TOPIC, b"of a, longer")
    members.kill("a")
    before = members.log_files("a")
    members.start("b")
    members.launch("a")
    assert members.exit_status("a") == 1
    assert "REPLICA_DIVERGED" in members.log("a").read_text()
    assert members.log_files("a") == before
