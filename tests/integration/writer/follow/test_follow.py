"""A store that follows a RocketMQ master: its copy is byte for byte equal, or it says why it stops."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.crash.small_disk import fill, small_disk
from tests.pipeline_runs import GOLDEN_SETTINGS, queue_files
from tests.waiting import refusal, until
from tidemark.client.producer.producer import Producer
from tidemark.errors import NotLeaderError
from tidemark.local.local_stack import WRITER, LocalStack, ServiceDiedError
from tidemark.replication.followed_broker import FollowedBroker, read_followed_broker
from tidemark.store.paths import StorePaths

from .fake_master import FakeMaster, log_end

GoldenStore = Callable[[str], Path]
FILE_BYTES = 1 << 20  # of the golden stores' logs


@pytest.fixture
def store(golden_store: GoldenStore, tmp_path: Path) -> Path:
    """A broker's store, which a test may change."""
    return Path(shutil.copytree(golden_store("mixed/store"), tmp_path / "broker"))


@pytest.fixture
def master(store: Path) -> Iterator[FakeMaster]:
    with FakeMaster(store, FILE_BYTES) as served:
        yield served


def stack_of(
    copy: Path, master: FakeMaster, settings: Mapping[str, str] | None = None, *, is_whole: bool = False
) -> LocalStack:
    """Return the follower of *master*; is_whole: with pipeline and query service."""
    environment = {"TIDEMARK_FOLLOW": master.url, "TIDEMARK_PIPELINE": "plain", **(settings or {})}
    services = None if is_whole else (WRITER,)
    return LocalStack(
        copy,
        environment=environment,
        services=services,
        writer_remoting_port=0,
        query_remoting_port=0,
        small_new_files=False,
    )


def end_of(copy: Path) -> int:
    """Return the end of the copy's log, as the writer service publishes it."""
    return log_end(copy) if any((copy / "commitlog").iterdir()) else 0


def require_equal(copy: Path, master: FakeMaster) -> None:
    """Wait for the log's end, and compare all bytes below it."""
    until(lambda: master.reported and master.reported[-1] == master.end, "everything is acknowledged")
    names = [file.name for file in sorted((master.folder / "commitlog").iterdir()) if int(file.name) >= master.begin]
    for name in names:
        size = min(FILE_BYTES, master.end - int(name))
        ours, theirs = ((root / "commitlog" / name).read_bytes()[:size] for root in (copy, master.folder))
        assert ours == theirs, name


def state_of(copy: Path) -> FollowedBroker:
    state = read_followed_broker(StorePaths(copy).follow)
    assert state is not None
    return state


def failure_of_start(stack: LocalStack) -> str:
    """Start the writer, which ends by itself; return the last line of its log."""
    with contextlib.suppress(ServiceDiedError):  # if it ends before it is seen
        stack.start_service(WRITER)
    until(lambda: stack.services[WRITER].exit_status is not None, "the writer ends")
    assert stack.services[WRITER].exit_status == 1
    return stack.services[WRITER].last_lines(1)[0]


def test_log_queues_and_tables_of_a_broker_are_copied(
    golden_store: GoldenStore, store: Path, master: FakeMaster, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    sizes = {f"TIDEMARK_{name.upper()}": str(value) for name, value in GOLDEN_SETTINGS["mixed/store"].items()}
    with stack_of(copy, master, sizes, is_whole=True) as stack:
        require_equal(copy, master)
        with httpx.Client(base_url=stack.query_url, timeout=60) as client:
            until(lambda: client.get("/v1/status").json()["lag_bytes"] == 0, "everything is visible")
            followed = client.get("/v1/status").json()["follow"]
            assert (followed["broker"], followed["is_connected"], followed["problem"]) == ("broker-a", True, "")
            refused = client.post("/v1/topics/orders/messages", json={"messages": [{"body": "x"}]})
            assert (refused.status_code, refused.json()["reason"]) == (421, "NOT_LEADER")
        assert "broker-a" in refusal(stack.writer_address, "orders", NotLeaderError).message
    assert queue_files(copy) == queue_files(golden_store("mixed/store"))


@pytest.mark.parametrize("frame_bytes", [333, 1 << 20])
def test_frames_of_any_size_are_put_together(master: FakeMaster, tmp_path: Path, frame_bytes: int) -> None:
    master.frame_bytes = frame_bytes
    with stack_of(tmp_path / "copy", master):
        require_equal(tmp_path / "copy", master)


def test_a_killed_follower_continues_where_it_was(master: FakeMaster, tmp_path: Path) -> None:
    copy, end = tmp_path / "copy", master.end
    master.end = 1 + end // 2  # within a record
    with stack_of(copy, master) as stack:
        until(lambda: master.reported and master.reported[-1] > end // 2 - FILE_BYTES // 8, "half is acknowledged")
        acknowledged = master.reported[-1]
        stack.services.pop(WRITER).kill()
        master.reported.clear()
        master.end = end
        stack.start_service(WRITER)
        require_equal(copy, master)
        assert acknowledged - (64 << 10) <= master.reported[0] <= acknowledged, "it compares what both have"


def test_a_broker_that_ends_its_connections_is_followed_again(master: FakeMaster, tmp_path: Path) -> None:
    copy, end = tmp_path / "copy", master.end
    master.end = 1 + end // 3
    with stack_of(copy, master):
        until(lambda: master.reported and state_of(copy).is_connected, "both sides have the connection")
        master.disconnect()
        until(lambda: not state_of(copy).is_connected, "it is not connected")
        assert "has ended the connection" in state_of(copy).problem
        master.end = end
        require_equal(copy, master)
        until(lambda: state_of(copy).is_connected, "it is connected again")


def test_a_log_whose_first_files_are_deleted_is_copied_from_its_beginning(master: FakeMaster, tmp_path: Path) -> None:
    master.begin = FILE_BYTES
    with stack_of(tmp_path / "copy", master):
        require_equal(tmp_path / "copy", master)
    assert min(file.name for file in (tmp_path / "copy" / "commitlog").iterdir()) == f"{FILE_BYTES:020}"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_copy_without_bytes_begins_anew_if_more_files_are_deleted(
    master: FakeMaster, tmp_path: Path, restarts: bool
) -> None:
    copy, begun = tmp_path / "copy", threading.Event()

    def end_connection(_at: int, _data: bytes) -> bytes:
        begun.set()
        raise OSError

    master.begin, master.change = FILE_BYTES, end_connection
    with stack_of(copy, master) as stack:
        until(begun.is_set, "the copy has begun")
        if restarts:
            stack.stop()
        master.begin, master.change = 2 * FILE_BYTES, lambda _, data: data
        if restarts:
            stack.start_service(WRITER)
        require_equal(copy, master)
    assert min(file.name for file in (copy / "commitlog").iterdir()) == f"{2 * FILE_BYTES:020}"


def test_a_copy_continues_if_the_broker_has_deleted_what_both_would_be_compared_by(
    master: FakeMaster, tmp_path: Path
) -> None:
    copy, end = tmp_path / "copy", master.end
    master.end = FILE_BYTES + 20_000
    with stack_of(copy, master) as stack:
        until(lambda: master.reported and master.reported[-1] > FILE_BYTES, "the first file is copied")
        stack.stop()
        master.begin, master.end = FILE_BYTES, end
        stack.start_service(WRITER)
        require_equal(copy, master)


def test_a_log_that_parts_from_the_brokers_is_kept_and_not_followed(master: FakeMaster, tmp_path: Path) -> None:
    """RocketMQ's own slave would append behind other bytes, without a word."""
    copy, end = tmp_path / "copy", master.end
    master.end = end - 300_000
    with stack_of(copy, master) as stack:
        until(lambda: end_of(copy) and master.reported[-1] > master.end - 100_000, "most is copied")
        stack.stop()
        before = {file.name: file.read_bytes() for file in (copy / "commitlog").iterdir()}
        place = end_of(copy) - 5_000
        master.change = lambda at, data: _flipped(data, place - at)
        master.end = end
        failure = failure_of_start(stack)
        assert f"REPLICA_DIVERGED: this log and the broker's differ at physical offset {place}" in failure
    assert {file.name: file.read_bytes() for file in (copy / "commitlog").iterdir()} == before


def test_a_broker_that_has_lost_its_end_is_not_followed(master: FakeMaster, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with stack_of(copy, master) as stack:
        require_equal(copy, master)
        stack.stop()
        master.end -= 1_000
        assert "REPLICA_DIVERGED: the broker's log ends at" in failure_of_start(stack)


def test_a_gap_is_not_followed(master: FakeMaster, tmp_path: Path) -> None:
    copy, end = tmp_path / "copy", master.end
    master.end = FILE_BYTES // 2
    with stack_of(copy, master) as stack:
        until(lambda: master.reported and master.reported[-1] > FILE_BYTES // 4, "something is copied")
        stack.stop()
        master.begin, master.end = FILE_BYTES, end
        assert f"OFFSET_TOO_SMALL: the broker's log begins at {FILE_BYTES}" in failure_of_start(stack)


def test_a_damaged_record_is_waited_for_and_named(master: FakeMaster, tmp_path: Path) -> None:
    """The protocol has no checksum, so the record may be right when it is sent again."""
    copy = tmp_path / "copy"
    master.change = lambda at, data: _flipped(data, 4 - at if at else 4)  # the first record's magic
    with stack_of(copy, master):
        until(lambda: "is damaged: MAGIC" in state_of(copy).problem, "the damage is named")
        assert end_of(copy) == 0
        master.change = lambda _, data: data
        require_equal(copy, master)


def _flipped(data: bytes, place: int) -> bytes:
    return data if not 0 <= place < len(data) else data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_a_full_disk_is_waited_for(master: FakeMaster, tmp_path: Path) -> None:
    """Neither the log nor the state of the copy can be written meanwhile."""
    end = master.end
    master.end = 200_000
    with small_disk(tmp_path / "disk", "24m") as disk:
        copy = disk / "copy"
        with stack_of(copy, master) as stack:
            until(lambda: master.reported and master.reported[-1] > 150_000, "something is copied")
            fill(disk / "filler")
            master.end = end
            time.sleep(3)
            stack.check()
            (disk / "filler").unlink()
            require_equal(copy, master)


def test_kf28_a_topic_is_known_before_its_first_record_is_shown(master: FakeMaster, tmp_path: Path) -> None:
    """Records came to a slave up to a minute before their topic, and batches got queues of the other kind
    (rocketmq#5077); here a topic's configuration is stored first."""
    copy, end = tmp_path / "copy", master.end
    topics = StorePaths(master.folder).topics.read_bytes()
    master.set_table("topics.json", {"topicConfigTable": {}})
    master.end = 1
    with stack_of(copy, master):
        until(lambda: state_of(copy).is_connected, "it is connected")
        master._tables.clear()
        master.end = end
        require_equal(copy, master)
    assert b"BatchCQ" in topics
    assert b"BatchCQ" in StorePaths(copy).topics.read_bytes()


def test_calls_are_signed_with_the_access_key(master: FakeMaster, tmp_path: Path) -> None:
    copy, secret = tmp_path / "copy", tmp_path / "secret"
    secret.write_text("12345678\n")
    master.secret = "12345678"
    with pytest.raises(ServiceDiedError) as died, stack_of(copy, master):
        pass
    assert "BROKER_UNREACHABLE" in died.value.last_lines[-1] and "no signature" in died.value.last_lines[-1]
    keys = {"TIDEMARK_FOLLOW_ACCESS_KEY": "slave", "TIDEMARK_FOLLOW_SECRET_KEY_FILE": str(secret)}
    with stack_of(copy, master, keys):
        require_equal(copy, master)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"enableControllerMode": "true"}, "STORE_CONTRADICTION: broker broker-a has a controller"),
        ({"enableDLegerCommitLog": "true"}, "STORE_CONTRADICTION: broker broker-a has a DLedger log"),
    ],
)
def test_brokers_with_other_protocols_are_refused(
    master: FakeMaster, tmp_path: Path, settings: dict[str, str], fault: str
) -> None:
    master.settings = settings
    with pytest.raises(ServiceDiedError) as died, stack_of(tmp_path / "copy", master):
        pass
    assert fault in died.value.last_lines[-1]


def test_an_unknown_broker_is_named_with_those_that_are_known(master: FakeMaster, tmp_path: Path) -> None:
    settings = {"TIDEMARK_FOLLOW": f"rocketmq://{master.address}/broker-b"}
    with pytest.raises(ServiceDiedError) as died, stack_of(tmp_path / "copy", master, settings):
        pass
    assert "knows no master of broker broker-b; it knows the brokers broker-a" in died.value.last_lines[-1]


def test_the_copy_becomes_a_store_of_its_own(master: FakeMaster, tmp_path: Path) -> None:
    """After the move, queue offsets and groups continue at the broker's offsets."""
    copy = tmp_path / "copy"
    master.set_table("consumerOffset.json", {"offsetTable": {"orders@readers": {0: 3}}})
    with stack_of(copy, master, is_whole=True) as stack:
        require_equal(copy, master)
        until(lambda: httpx.get(f"{stack.query_url}/v1/status").json()["lag_bytes"] == 0, "everything is visible")
        ends = _ends(stack)
    with LocalStack(copy, environment={"TIDEMARK_PIPELINE": "plain"}) as stack:
        assert _ends(stack) == ends
        topic, queue_id = next(iter(ends))
        with Producer(stack.writer_address) as producer:
            assert producer.send(topic, b"own", queue_id=queue_id).queue_offset == ends[topic, queue_id]
        status: dict[str, Any] = httpx.get(f"{stack.query_url}/v1/status").json()
        assert status["follow"] is None
        groups = httpx.get(f"{stack.query_url}/v1/groups/readers").json()
        assert [(one["topic"], one["queue_id"], one["offset"]) for one in groups["queues"]] == [("orders", 0, 3)]


def _ends(stack: LocalStack) -> dict[tuple[str, int], int]:
    ends: dict[tuple[str, int], int] = {}
    for topic in httpx.get(f"{stack.query_url}/v1/topics").json()["topics"]:
        detail = httpx.get(f"{stack.query_url}/v1/topics/{topic['topic']}").json()
        ends |= {(topic["topic"], queue["queue_id"]): queue["max_offset"] for queue in detail["queues"]}
    return {key: end for key, end in ends.items() if end and not key[0].startswith("%")}
