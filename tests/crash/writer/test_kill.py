"""SIGKILL of a writer under load, and restarts: acknowledged ⊆ stored ⊆ sent, each once, in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import wire_batch
from tests.integration.writer.harness import log_bytes, stored_places
from tidemark.v1 import commit_log_pb2 as pb

from .process import Load, RemotingLoad, WriterProcess

pytestmark = pytest.mark.crash

StartWriter = Callable[..., WriterProcess]
ONE = wire_batch((b"x", b"", 0))


def check_store(root: Path, loads: list[Load]) -> None:
    """Check the promise from the bytes on disk alone."""
    next_offsets: dict[int, int] = {}
    places: dict[bytes, tuple[int, int, int]] = {}
    for physical_offset, record in stored_places(root):
        assert record.physical_offset == physical_offset
        if record.topic != b"load":
            continue
        assert record.queue_offset == next_offsets.get(record.queue_id, 0), "queue offsets are not dense"
        next_offsets[record.queue_id] = record.queue_offset + 1
        assert record.body not in places, "a message is stored twice"
        places[record.body] = (physical_offset, record.queue_id, record.queue_offset)
    sent = {load.body(number, part) for load in loads for number in range(load.sent) for part in (0, 1)}
    assert places.keys() <= sent
    for load in loads:
        for number, answer in load.acknowledged.items():
            first = (answer.physical_offset, answer.queue_id, answer.queue_offset)
            assert places[load.body(number, 0)] == first
            assert places[load.body(number, 1)][1:] == (answer.queue_id, answer.queue_offset + 1)
        for number in range(load.sent):  # all or nothing
            assert (load.body(number, 0) in places) == (load.body(number, 1) in places)


@pytest.mark.parametrize("flush_mode", ["sync", "async"])
@pytest.mark.parametrize("load_of", [Load, RemotingLoad], ids=["gRPC", "remoting"])
def test_a_kill_under_load_loses_no_acknowledged_message(
    start_writer: StartWriter, tmp_path: Path, flush_mode: str, load_of: type[Load]
) -> None:
    """The writer is killed twice under load and across rolls, then stopped; async mode loses nothing either."""
    loads = []
    for number, batches in enumerate((2_000, 800)):  # a file holds about 1,600
        writer = start_writer(FLUSH_MODE=flush_mode)
        loads.append(load_of(writer, f"load{number}"))
        loads[-1].wait_for(batches)
        writer.kill()
        loads[-1].stop()
    writer = start_writer()
    assert writer.event("store_recovered")["damages"] == 0
    assert not any(load.refused for load in loads)
    check_store(tmp_path / "store", loads)
    loads.append(load_of(writer, "last"))
    loads[-1].wait_for(400)
    loads[-1].stop()
    assert writer.terminate() == 0
    assert len(loads[-1].acknowledged) == loads[-1].sent
    assert len(log_bytes(tmp_path / "store")) > 1, "the log must have rolled"
    check_store(tmp_path / "store", loads)


def test_batches_in_flight_at_a_kill_may_be_repeated(start_writer: StartWriter, tmp_path: Path) -> None:
    """Every unanswered batch is sent again after the restart: all are stored, none twice."""
    writer = start_writer()
    load = Load(writer, "load")
    load.wait_for(1_000)
    writer.kill()
    load.stop()
    writer = start_writer()
    for number in range(load.sent):
        if number not in load.acknowledged:
            wire = wire_batch((load.body(number, 0), b"", 0), (load.body(number, 1), b"", 0))
            request = pb.AppendBatchRequest(topic="load", queue_id=number % 4, packed=wire, request_id=f"load-{number}")
            load.acknowledged[number] = writer.log.AppendBatch(request, timeout=10)
    assert writer.terminate() == 0
    assert len(load.acknowledged) == load.sent
    check_store(tmp_path / "store", [load])


def test_restarts_without_writes_change_no_byte(start_writer: StartWriter, tmp_path: Path) -> None:
    """The writer is killed or stopped repeatedly: the log does not change (RocketMQ #6665)."""
    writer = start_writer()
    load = Load(writer, "load")
    load.wait_for(600)
    writer.kill()
    load.stop()
    start_writer().kill()
    before = {start: data for start, data in log_bytes(tmp_path / "store").items() if any(data)}
    for end in (WriterProcess.kill, WriterProcess.terminate, WriterProcess.kill):
        end(start_writer())
        after = {start: data for start, data in log_bytes(tmp_path / "store").items() if any(data)}
        assert after == before


def test_sigterm_under_load_answers_each_send_of_a_rocketmq_client(start_writer: StartWriter, tmp_path: Path) -> None:
    """Until its connection closes: stored, or refused with a code on which clients send again."""
    writer = start_writer()
    load = RemotingLoad(writer, "load")
    load.wait_for(400)
    assert writer.terminate() == 0
    load.stop()
    assert set(load.codes.values()) <= {14, 1500}
    check_store(tmp_path / "store", [load])


def test_sigterm_under_load_leaves_a_clean_store(start_writer: StartWriter, tmp_path: Path) -> None:
    """Batches in flight are answered, later ones are refused; exit code 0, a clean flag, no unused file."""
    writer = start_writer()
    load = Load(writer, "load")
    load.wait_for(800)
    assert writer.terminate() == 0
    load.stop()
    assert {refusal.reason for refusal in load.refused.values()} <= {"STORE_CLOSED"}
    root = tmp_path / "store"
    end = max(answer.end_physical_offset for answer in load.acknowledged.values())
    assert int((root / "tidemark" / "writer" / "clean").read_text()) == end
    assert max(log_bytes(root)) <= end
    check_store(root, [load])
    writer = start_writer()
    recovered = writer.event("store_recovered")
    assert (recovered["recovered_end"], recovered["was_clean"]) == (end, True)
    assert not (root / "tidemark" / "writer" / "clean").exists()
    assert (root / "abort").exists()


def test_a_second_writer_on_the_same_store_is_refused(start_writer: StartWriter, tmp_path: Path) -> None:
    """It prints one clear line without a traceback, and exits with 1; the first one continues."""
    first = start_writer()
    second = WriterProcess(tmp_path / "store")
    with pytest.raises(AssertionError, match="did not start"):
        second.wait_until_started()
    assert second.wait() == 1
    (line,) = second.lines
    assert "another process" in line
    assert "lock" in line
    assert first.log.AppendBatch(pb.AppendBatchRequest(topic="t", packed=ONE), timeout=10).queue_offset == 0


@pytest.mark.parametrize(
    ("prepare", "settings", "says"),
    [
        ("foreign", {}, "foreign file"),
        ("sizes", {"COMMIT_LOG_SEGMENT_SIZE_BYTES": 2 << 20}, "commit_log_segment_size_bytes"),
        ("nothing", {"FLUSH_MODE": "sometimes"}, "TIDEMARK_FLUSH_MODE"),
        ("nothing", {"WRITER_LISTEN": "somewhere"}, "somewhere"),
    ],
    ids=["foreign file", "other size", "wrong setting", "no address"],
)
def test_a_store_that_cannot_be_served_is_reported_in_one_line(
    start_writer: StartWriter, tmp_path: Path, prepare: str, settings: dict[str, object], says: str
) -> None:
    """The line has fault and place, without a traceback, and nothing is changed. Wrong settings give exit code 2."""
    if prepare != "nothing":
        writer = start_writer()
        writer.log.AppendBatch(pb.AppendBatchRequest(topic="t", packed=ONE), timeout=10)
        writer.terminate()
    if prepare == "foreign":
        (tmp_path / "store" / "commitlog" / ".DS_Store").write_bytes(b"?")
    before = log_bytes(tmp_path / "store") if prepare == "sizes" else None
    refused = WriterProcess(tmp_path / "store", **settings)
    with pytest.raises(AssertionError, match="did not start"):
        refused.wait_until_started()
    assert refused.wait() == (2 if prepare == "nothing" else 1)
    assert len(refused.lines) == 1, refused.lines
    assert says in refused.lines[0]
    assert before is None or log_bytes(tmp_path / "store") == before


def test_sizes_of_existing_files_apply_without_a_setting(start_writer: StartWriter, tmp_path: Path) -> None:
    """Without the setting the files' own size is used, whatever the default is."""
    writer = start_writer()
    writer.log.AppendBatch(pb.AppendBatchRequest(topic="t", packed=ONE), timeout=10)
    writer.terminate()
    writer = start_writer(COMMIT_LOG_SEGMENT_SIZE_BYTES=None)
    assert writer.log.GetLogInfo(pb.GetLogInfoRequest(), timeout=10).segment_size_bytes == 1 << 20
    assert writer.terminate() == 0
