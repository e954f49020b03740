"""The pipeline before Spark is up, without it, and over a damaged checkpoint of it: real processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.pipeline.test_pipeline_process import ENVIRONMENT, send, wait_for_watermark
from tests.processes import command_line
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


def children_of(pid: int, command: str) -> list[int]:
    """Return the children of process *pid* that have *command* in their command line."""
    return [child.pid for child in psutil.Process(pid).children() if command in command_line(child)]


def driver_of(stack: LocalStack) -> int:
    """Return the process of Spark's driver."""
    (driver,) = children_of(stack.services[PIPELINE].pid, "spawn_main")
    return driver


def jvm_of(stack: LocalStack) -> int:
    (jvm,) = children_of(driver_of(stack), "SparkSubmit")
    return jvm


def python_processes_of(stack: LocalStack) -> list[int]:
    """Return the process that forks Spark's Python workers, and the workers."""
    (daemon,) = children_of(jvm_of(stack), "spark.daemon")
    return [daemon, *children_of(daemon, "")]


def count(stack: LocalStack, event: str) -> int:
    """Return how often the pipeline has logged *event*."""
    return stack.services[PIPELINE].log_path.read_text().count(f'"event": "{event}"')


def wait_for_event(stack: LocalStack, event: str, times: int) -> None:
    give_up = time.monotonic() + 150
    while count(stack, event) < times:
        assert time.monotonic() < give_up, stack.services[PIPELINE].last_lines()
        stack.check()
        time.sleep(0.05)


def wait_for_spark(stack: LocalStack, times: int = 1) -> None:
    """Wait until Spark follows for the given time, and the second follower has had an epoch."""
    wait_for_event(stack, "spark_follows", times)
    before = stack.services[PIPELINE].log_path.read_text().count('"follower": 1')
    give_up = time.monotonic() + 60
    while stack.services[PIPELINE].log_path.read_text().count('"follower": 1') <= before:
        assert time.monotonic() < give_up
        time.sleep(0.05)


def checkpoint_files(root: Path) -> list[Path]:
    """Return the files of Spark's checkpoint."""
    return [path for path in (StorePaths(root).indexer / "spark").rglob("*") if path.is_file()]


def test_messages_are_visible_before_spark_is_up(stack: LocalStack) -> None:
    wait_for_watermark(stack.data, send(stack, 20))
    assert count(stack, "spark_follows") == 0
    wait_for_spark(stack)
    assert count(stack, "understudy_gave_back") == 1
    wait_for_watermark(stack.data, send(stack, 20))


@pytest.mark.exhaustive
@pytest.mark.parametrize("victim_of", [jvm_of, driver_of])
def test_the_understudy_builds_until_spark_is_back(stack: LocalStack, victim_of: Callable[[LocalStack], int]) -> None:
    """The service keeps running. Messages are visible before Spark follows again."""
    wait_for_spark(stack)
    os.kill(victim_of(stack), signal.SIGKILL)
    wait_for_watermark(stack.data, send(stack, 20))
    assert count(stack, "spark_follows") == 1
    wait_for_spark(stack, 2)
    assert count(stack, "spark_lost") == 1
    wait_for_watermark(stack.data, send(stack, 20))
    assert stack.services[PIPELINE].stop(30) == 0


@pytest.mark.exhaustive
def test_the_understudy_builds_while_spark_replaces_its_python_processes(stack: LocalStack) -> None:
    wait_for_spark(stack)
    for process in python_processes_of(stack):
        os.kill(process, signal.SIGKILL)
    wait_for_watermark(stack.data, send(stack, 20))
    wait_for_event(stack, "understudy_gave_back", 2)
    assert count(stack, "spark_lost") == 0


def test_no_process_survives_a_killed_service(stack: LocalStack) -> None:
    wait_for_spark(stack)
    processes = [driver_of(stack), jvm_of(stack), *python_processes_of(stack)]
    stack.services.pop(PIPELINE).kill()
    give_up = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in processes):
        assert time.monotonic() < give_up, processes
        time.sleep(0.05)
    end = send(stack, 20)
    stack.start_service(PIPELINE)
    wait_for_watermark(stack.data, end)


@pytest.mark.exhaustive
def test_spark_starts_over_any_checkpoint(stack: LocalStack) -> None:
    wait_for_spark(stack)
    stack.services.pop(PIPELINE).kill()
    files = checkpoint_files(stack.data)
    assert len(files) >= len(DAMAGES)
    for number, path in enumerate(files):
        DAMAGES[number % len(DAMAGES)](path)
    stack.start_service(PIPELINE)
    wait_for_spark(stack)
    wait_for_watermark(stack.data, send(stack, 20))
    assert stack.services[PIPELINE].stop(30) == 0
