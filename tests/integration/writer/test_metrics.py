"""The writer's metrics."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.builders import wire_batch
from tidemark.v1 import commit_log_pb2 as pb

from .faulty_storage import FaultyStorage
from .harness import RunningWriter, refusal_of

pytestmark = pytest.mark.integration
TOPICS = 3_000
ONE = wire_batch((b"x", b"", 0))


def values(writer: RunningWriter, name: str) -> dict[str, float]:
    """Return the values of the samples of *name* by their labels' text."""
    found: dict[str, float] = {}
    for line in writer.metrics():
        sample, _, value = line.rpartition(" ")
        if sample.partition("{")[0] == name:
            found[sample.removeprefix(name)] = float(value)
    return found


def test_appends_are_counted_as_they_were_answered(writer: RunningWriter) -> None:
    """Messages and bytes of stored batches count; duplicates and refusals are counted separately."""
    two = wire_batch((b"one", b"", 0), (b"two", b"", 0))
    stored = [writer.append("a", two, request_id="r"), writer.append("b", wire_batch((b"x", b"", 0)))]
    assert writer.append("a", two, request_id="r").duplicate
    refusal_of(lambda: writer.append("a", wire_batch((b"other", b"", 0)), request_id="r"))
    refusal_of(lambda: writer.append("a", b"rubbish"))
    sizes = [answer.end_physical_offset - answer.physical_offset for answer in stored]
    assert values(writer, "rocketmq_messages_in_total") == {'{topic="a"}': 2, '{topic="b"}': 1}
    assert values(writer, "rocketmq_throughput_in_total") == {'{topic="a"}': sizes[0], '{topic="b"}': sizes[1]}
    assert values(writer, "tidemark_duplicate_batches_total") == {"": 1}
    assert values(writer, "tidemark_refused_appends_total") == {
        '{reason="BATCH_MALFORMED"}': 1,
        '{reason="REQUEST_ID_CONFLICT"}': 1,
    }


def test_group_commit_disk_and_offset_metrics_are_read_at_the_scrape(writer: RunningWriter) -> None:
    """With one append at a time each has its own sync, and no backlog remains."""
    answers = [writer.append("t", wire_batch((b"x" * 100, b"", 0))) for _ in range(3)]
    assert values(writer, "tidemark_fdatasync_seconds_count") == {"": 3}
    assert values(writer, "tidemark_group_commit_batches_sum") == {"": 3}
    assert values(writer, "tidemark_group_commit_bytes_sum") == {"": answers[-1].end_physical_offset}
    assert values(writer, "rocketmq_storage_flush_behind_bytes") == {"": 0}
    assert values(writer, "tidemark_in_flight_bytes") == {"": 0}
    assert values(writer, "rocketmq_processor_watermark") == {'{processor="send"}': 0}
    (size,) = values(writer, "rocketmq_storage_size").values()
    assert size == sum(path.stat().st_size for path in (writer.root / "commitlog").iterdir())
    (free,) = values(writer, "tidemark_disk_free_bytes").values()
    assert free > 0


def test_thousands_of_topics_share_a_bounded_number_of_labels(tmp_path: Path) -> None:
    """No message is missing in the sum."""
    names = [f"topic-{number}" for number in range(TOPICS)]
    (tmp_path / "config").mkdir()
    table = {
        name: {"topicName": name, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "attributes": {}}
        for name in names
    }
    (tmp_path / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    packed = wire_batch((b"x", b"", 0))
    entries = [
        pb.AppendStreamRequest.Entry(
            correlation_id=number, batch=pb.AppendBatchRequest(topic=name, packed=packed, queue_id=0)
        )
        for number, name in enumerate(names)
    ]
    with RunningWriter(tmp_path, metrics_max_topics=50) as writer:
        frames = iter([pb.AppendStreamRequest(batches=entries)])
        answers = [result for response in writer.log.AppendStream(frames) for result in response.results]
        assert sum(answer.HasField("appended") for answer in answers) == TOPICS
        counted = values(writer, "rocketmq_messages_in_total")
        assert len(writer.metrics()) < 300
    assert (len(counted), counted['{topic="other"}'], sum(counted.values())) == (51, TOPICS - 50, TOPICS)


def test_a_taken_port_ends_the_start_before_the_store_is_opened(tmp_path: Path) -> None:
    """The exit status is 1, with a line that names the setting."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        settings = {"STORE_ROOT": tmp_path / "store", "WRITER_LISTEN": "127.0.0.1:0", "WRITER_METRICS_LISTEN": taken}
        done = subprocess.run(
            [sys.executable, "-m", "services.writer"],
            env={**os.environ, **{f"TIDEMARK_{name}": str(value) for name, value in settings.items()}},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert f"cannot listen on {taken} for metrics (TIDEMARK_WRITER_METRICS_LISTEN)" in done.stderr
    assert not (tmp_path / "store").exists()


def test_time_of_appends_is_measured(writer: RunningWriter) -> None:
    """Each answered batch counts once, also a duplicate, but not a refused one."""
    for _ in range(2):
        writer.append("t", ONE, request_id="r")
    refusal_of(lambda: writer.append("t", b"rubbish"))
    batch = pb.AppendBatchRequest(topic="t", packed=ONE)
    entries = [pb.AppendStreamRequest.Entry(correlation_id=number, batch=batch) for number in range(3)]
    answers = writer.log.AppendStream(iter([pb.AppendStreamRequest(batches=entries)]), timeout=30)
    assert sum(len(answer.results) for answer in answers) == 3
    assert values(writer, "tidemark_writer_append_seconds_count") == {"": 5}
    (total,) = values(writer, "tidemark_writer_append_seconds_sum").values()
    assert 0 < total < 60


@pytest.mark.parametrize(("warn_ms", "warnings"), [(1, 1), (0, 0)])
def test_a_slow_append_is_logged(tmp_path: Path, warn_ms: int, warnings: int) -> None:
    """There is at most one line a second, with the topic and the time; none if warnings are off."""
    storage = FaultyStorage()
    with capture_logs() as events, RunningWriter(tmp_path, storage, append_warning_ms=warn_ms) as writer:
        writer.append("t", ONE)
        storage.fdatasync_gate.clear()
        pending = [
            writer.log.AppendBatch.future(pb.AppendBatchRequest(topic="t", packed=ONE), timeout=60) for _ in range(4)
        ]
        time.sleep(0.1)
        storage.fdatasync_gate.set()
        assert {answer.result().status for answer in pending} == {pb.PUT_STATUS_PUT_OK}
    told = [event for event in events if event["event"] == "append_waited"]
    assert bool(told) is bool(warnings)
    for event in told:
        assert (event["topic"], event["messages"], event["waited_ms"] >= 1) == ("t", 1, True)
