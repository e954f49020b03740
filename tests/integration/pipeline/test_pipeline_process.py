"""The pipeline as a process: real Spark, real files, a real writer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders import write_log
from tests.pipeline_runs import GOLDEN_SETTINGS, build, index_contents, plan_of, queue_files, without_derived
from tidemark.client import Producer
from tidemark.index.ledger import read_ledger
from tidemark.local.local_stack import PIPELINE, WRITER, LocalStack
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths

pytestmark = pytest.mark.spark
GoldenStore = Callable[[str], Path]
SIZES = {"index_slots": 500, "index_entries": 2000, "consume_queue_file_size_bytes": 4000}
ENVIRONMENT = {f"TIDEMARK_{name.upper()}": str(value) for name, value in SIZES.items()} | {
    "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": "65536",
    "TIDEMARK_EPOCH_MS": "1000",
}


def run_once(root: Path, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run `python -m services.indexer pipeline --once` on *root*."""
    environment = {f"TIDEMARK_{name.upper()}": str(value) for name, value in settings.items()}
    return subprocess.run(
        [sys.executable, "-m", "services.indexer", "pipeline", "--once"],
        env={**os.environ, **environment, "TIDEMARK_STORE_ROOT": str(root)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def events(text: str) -> dict[str, dict[str, object]]:
    """Return the JSON log lines by event; the last one of each."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {line["event"]: line for line in lines}


def watermark_of(root: Path) -> int:
    path = StorePaths(root).marks
    if not path.exists():
        return 0
    marks = Marks.open_read_only(path)
    try:
        return marks.watermark()
    finally:
        marks.close()


def wait_for_watermark(root: Path, at_least: int, timeout_s: float = 60) -> None:
    """Wait until everything below *at_least* is visible."""
    deadline = time.monotonic() + timeout_s
    while watermark_of(root) < at_least:
        assert time.monotonic() < deadline, f"the watermark is {watermark_of(root)}, not {at_least}"
        time.sleep(0.01)


def rebuilt(root: Path, target: Path) -> Path:
    """Index the same log with an epoch in this process."""
    shutil.copytree(root / "commitlog", target / "commitlog")
    shutil.copy(root / "checkpoint", target / "checkpoint")
    shutil.copytree(root / "config", target / "config")
    build(plan_of(target, **SIZES))
    return target


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalStack]:
    """Run a writer and a pipeline on a new store."""
    stack = LocalStack(tmp_path / "store", environment=ENVIRONMENT, services=(WRITER, PIPELINE))
    left = StorePaths(stack.data).indexer / "scan"
    left.mkdir(parents=True)
    (left / "of-a-rebuild-that-was-killed.rows").touch()
    stack.start()
    assert not left.exists()
    yield stack
    stack.stop()


def send(stack: LocalStack, count: int, topic: str = "orders") -> int:
    """Send *count* messages over four queues; return the physical end of the last one."""
    with Producer(stack.writer_address) as producer:
        sent = [producer.send(topic, f"message {i}".encode(), key=f"k{i}", tag="A") for i in range(count)]
    return max(result.end_physical_offset for result in sent)


@pytest.mark.parametrize("pipeline", ["spark", "plain"])
def test_once_drains_a_brokers_log_and_exits_0(golden_store: GoldenStore, tmp_path: Path, pipeline: str) -> None:
    """Queues and index of the golden store, rebuilt by Spark's tasks or by processes, equal the broker's bytes."""
    root = without_derived(golden_store("mixed/store"), tmp_path / "store")
    done = run_once(root, **GOLDEN_SETTINGS["mixed/store"], pipeline=pipeline)
    assert done.returncode == 0, done.stderr
    assert events(done.stderr)["drain_started"]["pipeline"] == pipeline
    assert queue_files(root) == queue_files(golden_store("mixed/store"))
    assert index_contents(root) == index_contents(golden_store("mixed/store"))
    assert events(done.stderr)["drain_finished"]["records"] == 2414


@pytest.mark.parametrize("pipeline", ["spark", "plain"])
def test_a_log_that_contradicts_the_configured_size_ends_the_process(tmp_path: Path, pipeline: str) -> None:
    """A task's exception becomes the process's: exit status 1, and one event with the reason."""
    write_log(tmp_path / "commitlog", 4096, ({"queue_offset": i} for i in range(9)))
    done = run_once(tmp_path, commit_log_segment_size_bytes=8192, pipeline=pipeline)
    assert done.returncode == 1
    assert "4096 bytes, but the configured file size is 8192" in str(events(done.stderr)["pipeline_failed"]["message"])


def test_invalid_settings_are_reported_with_exit_status_2(tmp_path: Path) -> None:
    """No service starts."""
    done = run_once(tmp_path, shards=0)
    assert done.returncode == 2
    assert "pipeline: TIDEMARK_SHARDS: Input should be greater than or equal to 1" in done.stderr


def test_followed_files_equal_a_rebuild_after_hand_overs_kills_and_restarts(stack: LocalStack, tmp_path: Path) -> None:
    """Epochs of one second, a SIGKILL of the pipeline and an orderly stop give the bytes of one pass over the log."""
    root = stack.data
    for _ in range(3):
        wait_for_watermark(root, send(stack, 200))
        time.sleep(1)
    stack.services[PIPELINE].kill()
    end = send(stack, 300)
    stack.start_service(PIPELINE)
    wait_for_watermark(root, end)
    assert stack.services[PIPELINE].stop(30) == 0
    marks = Marks.open_read_only(StorePaths(root).marks)
    assert marks.watermark() == marks.durable_floor() == end
    built = rebuilt(root, tmp_path / "rebuilt")
    assert queue_files(root) == queue_files(built)
    assert index_contents(root) == index_contents(built)
    assert read_ledger(StorePaths(root).indexer) == []


def test_a_killed_and_restarted_writer_is_followed_into_its_new_term(stack: LocalStack) -> None:
    """The pipeline needs no restart."""
    root = stack.data
    wait_for_watermark(root, send(stack, 50))
    stack.services[WRITER].kill()
    stack.start_service(WRITER)
    end = send(stack, 50)
    wait_for_watermark(root, end)
    marks = Marks.open_read_only(StorePaths(root).marks)
    assert marks.term == 2


@pytest.mark.exhaustive
def test_the_first_epochs_are_short(tmp_path: Path) -> None:
    """The configured length does not matter: the JVM should have compiled the code of an epoch's end when it counts."""
    environment = {**ENVIRONMENT, "TIDEMARK_EPOCH_MS": "3600000", "TIDEMARK_WARM_UP_MS": "600000"}
    stack = LocalStack(tmp_path / "store", environment=environment, services=(WRITER, PIPELINE))
    stack.start()
    try:
        wait_for_watermark(stack.data, send(stack, 50))
        pipeline = stack.services[PIPELINE]
        give_up = time.monotonic() + 120
        while pipeline.log_path.read_text().count('"epoch_finished"') < 5:
            assert time.monotonic() < give_up, pipeline.last_lines()
            time.sleep(0.1)
    finally:
        stack.stop()


def test_classic_micro_batches_index_too(tmp_path: Path) -> None:
    """With epoch_ms 0 tasks drain and end, batch after batch; the health check supports that."""
    environment = {**ENVIRONMENT, "TIDEMARK_EPOCH_MS": "0"}
    stack = LocalStack(tmp_path / "store", environment=environment, services=(WRITER, PIPELINE))
    stack.start()
    try:
        for _ in range(3):
            wait_for_watermark(stack.data, send(stack, 50))
        health = [sys.executable, "-m", "services.indexer.healthcheck"]
        settings = {**os.environ, **environment, "TIDEMARK_STORE_ROOT": str(stack.data)}
        assert subprocess.run(health, env=settings, timeout=60, check=False).returncode == 0
        assert stack.services[PIPELINE].exit_status is None
    finally:
        stack.stop()


def test_the_health_check_fails_without_a_pipeline(stack: LocalStack) -> None:
    """It is green once every shard has a follower (also the key index, which no watermark covers), red after a kill."""
    health = [sys.executable, "-m", "services.indexer.healthcheck"]
    settings = {**os.environ, **ENVIRONMENT, "TIDEMARK_STORE_ROOT": str(stack.data)}

    def status() -> int:
        return subprocess.run(health, env=settings, timeout=60, check=False).returncode

    give_up = time.monotonic() + 60
    while status() != 0:
        assert time.monotonic() < give_up, "no shard has a follower"
    stack.services.pop(PIPELINE).kill()
    give_up = time.monotonic() + 30
    while status() != 1:  # a worker notices within a second that its driver is gone
        assert time.monotonic() < give_up, "a shard still has a follower"


def test_a_second_pipeline_on_the_same_store_is_refused(stack: LocalStack) -> None:
    """A store has one indexer at a time."""
    wait_for_watermark(stack.data, send(stack, 1))
    done = run_once(stack.data)
    assert done.returncode == 1
    assert events(done.stderr)["pipeline_failed"]["error"] == "StoreLockedError"


def test_a_task_that_cannot_continue_ends_the_process(stack: LocalStack) -> None:
    """A queue folder has the wrong type: the process exits with 1 and RocketMQ's text, instead of hanging silently."""
    root = stack.data
    wait_for_watermark(root, send(stack, 1))
    for queue_id in range(4):
        (root / "batchconsumequeue" / "payments" / str(queue_id)).mkdir(parents=True)
    send(stack, 4, topic="payments")
    pipeline = stack.services[PIPELINE]
    assert pipeline.wait(60) == 1
    assert any("should be BatchCQ, but is SimpleCQ" in line for line in pipeline.last_lines())
