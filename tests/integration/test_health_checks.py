"""The health checks of containers: their results, and their few imports."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.shards.hand_over import HandOver
from tests.built_store import BuiltStore
from tests.health_checks import SCRIPT, check_health, is_healthy, run_alone
from tests.integration.writer.harness import RunningWriter
from tests.query_server import serve_query
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.integration

MOST_MODULES = 40


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunningWriter]:
    with RunningWriter(tmp_path / "writer") as running:
        yield running


@pytest.fixture
def plan(tmp_path: Path) -> EpochPlan:
    """Return a pipeline's folder with marks of a recently active task."""
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


def modules_of(*arguments: str, **settings: object) -> set[str]:
    """Return the names of the modules that an interpreter with *arguments* imports until it ends."""
    lines = run_alone("-X", "importtime", *arguments, **settings).stderr.splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def require_cheap(service: str, **settings: object) -> None:
    """Require that the check imports little more than a bare interpreter: imports take most of its processor time."""
    assert is_healthy(service, **settings)
    more = modules_of(str(SCRIPT), service, **settings) - modules_of("-c", "pass")
    assert "socket" in more
    assert len(more) < MOST_MODULES, sorted(more)


def test_writer_is_healthy_while_it_serves(writer: RunningWriter) -> None:
    require_cheap("writer", writer_listen=writer.address)
    writer.stop()
    assert not is_healthy("writer", writer_listen=writer.address)


def test_query_is_healthy_while_it_answers(tmp_path: Path) -> None:
    with serve_query(built(tmp_path).root) as http:
        listen = f"127.0.0.1:{http.base_url.port}"
        require_cheap("query", query_listen=listen)
    assert not is_healthy("query", query_listen=listen)


def test_pipeline_is_healthy_while_every_shard_is_followed(plan: EpochPlan) -> None:
    settings = {"store_root": plan.root}
    holders = [HandOver(plan, [shard], 0) for shard in range(plan.all_shards)]
    for holder in holders:
        holder.acquire()
    require_cheap("pipeline", **settings)
    holders[1].release()
    unhealthy = check_health("pipeline", **settings)
    assert (unhealthy.returncode, unhealthy.stderr) == (1, "no process follows the shards [1]\n")
    assert is_healthy("pipeline", **settings, epoch_ms=0)


def test_a_pipeline_without_a_recent_heartbeat_is_unhealthy(plan: EpochPlan) -> None:
    marks = bytearray(plan.paths.marks.read_bytes())
    marks[40:48] = (1).to_bytes(8, "little")
    plan.paths.marks.write_bytes(marks)
    assert "no task of the pipeline was alive" in check_health("pipeline", store_root=plan.root).stderr


def test_pipeline_that_has_not_started_is_unhealthy(tmp_path: Path) -> None:
    unhealthy = check_health("pipeline", store_root=tmp_path)
    assert (unhealthy.returncode, unhealthy.stderr) == (1, "the pipeline has not started yet\n")


@pytest.mark.parametrize("service", ["writer", "query"])
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 503 Service Unavailable\r\n\r\n", b"\x00" * 64, b"hello\r\n"])
def test_another_answer_is_unhealthy(service: str, answer: bytes) -> None:
    """Any other bytes are unhealthy, without a traceback."""
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


def test_the_health_check_needs_only_the_standard_library() -> None:
    """It runs without site-packages and without this project's folder."""
    done = run_alone(str(SCRIPT), "nothing")
    assert (done.returncode, done.stderr) == (2, "usage: healthcheck.py (writer | query | pipeline)\n")
