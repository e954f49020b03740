"""The health checks of containers: what each says, and that it costs no more than an interpreter's start."""

from __future__ import annotations

import resource
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.hand_over import HandOver
from services.indexer.pipeline.plan import EpochPlan, make_plan
from tests.built_store import BuiltStore
from tests.health_checks import ALONE, SCRIPT, check_health, is_healthy
from tests.integration.writer.harness import RunningWriter
from tests.query_server import serve_query
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.integration

MOST_CPU_S = 0.05


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunningWriter]:
    with RunningWriter(tmp_path / "writer") as running:
        yield running


@pytest.fixture
def plan(tmp_path: Path) -> EpochPlan:
    """A pipeline's folder, with marks that say that a task was there just now."""
    plan = make_plan(PipelineSettings(store_root=tmp_path / "pipeline", shards=2))
    marks = Marks.open_to_write(plan.paths.marks, DiskStorage(), shards=plan.all_shards, term=1)
    marks.say_alive()
    marks.close()
    return plan


def built(root: Path) -> BuiltStore:
    store = BuiltStore(root)
    store.topic("t")
    store.publish()
    return store


def cpu_s(run: Callable[[], object]) -> float:
    """Processor time of the child processes that *run* starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def require_cheap(check: Callable[[], object]) -> None:
    """The least of several runs: the machine may be busy."""
    bare = min(cpu_s(lambda: subprocess.run([*ALONE, "-c", "pass"], check=True)) for _ in range(5))
    cost = min(cpu_s(check) for _ in range(5))
    assert cost < bare + MOST_CPU_S / 2
    assert cost < max(MOST_CPU_S, 2 * bare)


def test_writer_is_healthy_while_it_serves(writer: RunningWriter) -> None:
    assert is_healthy("writer", writer_listen=writer.address)
    require_cheap(lambda: is_healthy("writer", writer_listen=writer.address))
    writer.stop()
    assert not is_healthy("writer", writer_listen=writer.address)


def test_query_is_healthy_while_it_answers(tmp_path: Path) -> None:
    with serve_query(built(tmp_path).root) as http:
        listen = f"127.0.0.1:{http.base_url.port}"
        assert is_healthy("query", query_listen=listen)
        require_cheap(lambda: is_healthy("query", query_listen=listen))
    assert not is_healthy("query", query_listen=listen)


def test_pipeline_is_healthy_while_every_shard_is_followed(plan: EpochPlan) -> None:
    settings = {"store_root": plan.root}
    holders = [HandOver(plan, [shard], 0) for shard in range(plan.all_shards)]
    for holder in holders:
        holder.acquire()
    assert is_healthy("pipeline", **settings)
    require_cheap(lambda: is_healthy("pipeline", **settings))
    holders[1].release()
    unhealthy = check_health("pipeline", **settings)
    assert (unhealthy.returncode, unhealthy.stderr) == (1, "no process follows the shards [1]\n")
    assert is_healthy("pipeline", **settings, epoch_ms=0)


def test_pipeline_without_a_sign_of_life_is_unhealthy(plan: EpochPlan) -> None:
    marks = bytearray(plan.paths.marks.read_bytes())
    marks[40:48] = (1).to_bytes(8, "little")
    plan.paths.marks.write_bytes(marks)
    assert "sign of life" in check_health("pipeline", store_root=plan.root).stderr


def test_pipeline_that_has_not_started_is_unhealthy(tmp_path: Path) -> None:
    unhealthy = check_health("pipeline", store_root=tmp_path)
    assert (unhealthy.returncode, unhealthy.stderr) == (1, "the pipeline has not started yet\n")


@pytest.mark.parametrize("service", ["writer", "query"])
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 503 Service Unavailable\r\n\r\n", b"\x00" * 64, b"hello\r\n"])
def test_other_answer_is_unhealthy(service: str, answer: bytes) -> None:
    """Any bytes but the right ones, without a traceback."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        unhealthy = check_health(service, **{f"{service}_listen": f"127.0.0.1:{server.getsockname()[1]}"})
        thread.join()
    assert unhealthy.returncode == 1
    assert "Traceback" not in unhealthy.stderr


def test_check_needs_nothing_but_the_standard_library() -> None:
    """Without site-packages and without this project's folder."""
    done = subprocess.run([*ALONE, str(SCRIPT), "nothing"], cwd="/", capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (2, b"usage: healthcheck.py (writer | query | pipeline)\n")
