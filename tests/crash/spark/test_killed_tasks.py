"""A task's Python worker, or its whole executor, is killed while it writes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.crash.spark.batch_driver import ROWS
from tests.crash.spark.standalone import standalone_cluster
from tests.waiting import until
from tidemark.client import Consumer, Query, Topics
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1500)]

_DRIVER = Path(__file__).with_name("batch_driver.py")
_DAEMON, _EXECUTOR = "pyspark.daemon", "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_KILLS = 3
_DEADLINE_S = 600
_MOST_FAILURES = 50  # of one task: nearly every kill is one


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Run a stack that remembers only one batch per queue, so that the key index must show which rows were sent."""
    environment = {"TIDEMARK_IDEMPOTENCE_WINDOW_BATCHES": "1"}
    with LocalStack(tmp_path_factory.mktemp("stack") / "data", environment=environment) as stack:
        yield stack


def write_while_killing(
    stack: LocalStack, topic: str, master: str, conf: dict[str, str], victims: Callable[[int], list[psutil.Process]]
) -> None:
    """Run a job to its end although *victims* (of a driver's process id) are killed, after some rows each."""
    with Topics(stack.writer_address) as topics:
        topics.create(topic, queues=2)
    services = {"writers": stack.writer_address, "url": stack.query_url}
    given = {"topic": topic, "master": master, "conf": conf, **services}
    with subprocess.Popen([sys.executable, str(_DRIVER), json.dumps(given)]) as driver, Query(stack.query_url) as query:
        try:
            for _ in range(_KILLS):
                before = written(query, topic)
                until(
                    lambda before=before: written(query, topic) > before and bool(victims(driver.pid)),  # type: ignore[misc]
                    "tasks write again",
                    _DEADLINE_S,
                )
                assert driver.poll() is None, "the job ended before a kill"
                for victim in victims(driver.pid):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        victim.kill()
            assert driver.wait(_DEADLINE_S) == 0
        finally:
            driver.kill()


def written(query: Query, topic: str) -> int:
    """Return the number of visible messages of the topic."""
    return sum(int(queue["max_offset"]) for queue in query.get(f"/v1/topics/{topic}")["queues"])


def require_each_row_once(stack: LocalStack, topic: str) -> None:
    """Require each row once in the topic, as a consumer reads it."""
    bodies = Counter[int]()
    with Consumer([topic], url=stack.query_url) as consumer:
        while (table := consumer.poll_table(timeout_s=3)) is not None:
            bodies.update(int(body) for body in table["body"].to_pylist())
    assert bodies == Counter(range(ROWS))


def python_workers(driver: int) -> list[psutil.Process]:
    """Return the processes that run tasks: forks of Spark's daemon with the same command line; the daemon survives."""
    with contextlib.suppress(psutil.NoSuchProcess):
        daemons = [one for one in psutil.Process(driver).children(recursive=True) if is_running(one, _DAEMON)]
        return [child for daemon in daemons for child in daemon.children() if is_running(child, _DAEMON)]
    return []


def is_running(process: psutil.Process, program: str) -> bool:
    """Return True if *process* runs *program*, and was not killed yet."""
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return program in process.cmdline()
    return False


def test_killed_python_workers_lose_and_duplicate_nothing(stack: LocalStack) -> None:
    """All workers of both running tasks are killed in the middle of their rows."""
    write_while_killing(stack, "workers", f"local[2,{_MOST_FAILURES}]", {}, python_workers)
    require_each_row_once(stack, "workers")


def test_a_killed_executor_loses_and_duplicates_nothing(stack: LocalStack, tmp_path: Path) -> None:
    """One of two is killed; rows that its Python workers still send coincide with those of the next attempt."""
    conf = {
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.task.maxFailures": str(_MOST_FAILURES),
        "spark.executor.maxNumFailures": str(_MOST_FAILURES),
    }
    with standalone_cluster(tmp_path, cores=2) as (master, worker):

        def first_executor(_: int) -> list[psutil.Process]:
            started = psutil.Process(worker.pid).children(recursive=True)
            return [one for one in started if is_running(one, _EXECUTOR)][:1]

        write_while_killing(stack, "executors", master, conf, first_executor)
    require_each_row_once(stack, "executors")
