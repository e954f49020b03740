"""The pipeline without its JVM, and over a damaged checkpoint of Spark: real processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.pipeline.test_pipeline_process import ENVIRONMENT, send, wait_for_watermark
from tidemark.local.local_stack import PIPELINE, WRITER, LocalStack
from tidemark.store.paths import StorePaths

pytestmark = pytest.mark.spark

DAMAGES: tuple[Callable[[Path], object], ...] = (
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    lambda path: path.write_bytes(b"\xff" * 100),
    lambda path: path.unlink(),
)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalStack]:
    stack = LocalStack(tmp_path / "store", environment=ENVIRONMENT, services=(WRITER, PIPELINE))
    stack.start()
    yield stack
    stack.stop()


def jvm_of(pid: int) -> int:
    """Return the JVM's process id: a child of the pipeline that runs Spark's gateway."""
    for child in (int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        if b"SparkSubmit" in Path(f"/proc/{child}/cmdline").read_bytes():
            return child
    raise AssertionError("no JVM")


def checkpoint_files(root: Path) -> list[Path]:
    """Return the files of Spark's checkpoint."""
    return [path for path in (StorePaths(root).indexer / "spark").rglob("*") if path.is_file()]


def test_a_pipeline_that_loses_its_jvm_exits_and_restarts_with_any_checkpoint(stack: LocalStack) -> None:
    root = stack.data
    wait_for_watermark(root, send(stack, 20))
    give_up = time.monotonic() + 120
    while len(checkpoint_files(root)) <= len(DAMAGES):  # each query of the pipeline writes its own
        assert time.monotonic() < give_up, checkpoint_files(root)
        time.sleep(0.1)
    pipeline = stack.services[PIPELINE]
    os.kill(jvm_of(pipeline.pid), signal.SIGKILL)
    assert pipeline.wait(20) == 1  # five seconds on an idle machine
    assert any("spark_jvm_lost" in line for line in pipeline.last_lines(100))
    pipeline.stop(5)  # closes its log

    files = checkpoint_files(root)
    assert len(files) >= len(DAMAGES)
    for number, path in enumerate(files):
        DAMAGES[number % len(DAMAGES)](path)
    end = send(stack, 20)
    stack.start_service(PIPELINE)
    wait_for_watermark(root, end, timeout_s=150)
    assert stack.services[PIPELINE].stop(30) == 0
