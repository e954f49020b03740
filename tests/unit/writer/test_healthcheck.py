from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from services.indexer.healthcheck import main as pipeline_main
from services.indexer.query.healthcheck import main as query_main
from services.writer.healthcheck import main


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[health.HealthServicer]:
    """Serve gRPC's health service at the writer's address."""
    servicer = health.HealthServicer()
    server = grpc.server(ThreadPoolExecutor(1))
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("TIDEMARK_WRITER_LISTEN", f"0.0.0.0:{port}")
    yield servicer
    server.stop(None).wait()


@pytest.mark.parametrize(("status", "expected"), [("SERVING", 0), ("NOT_SERVING", 1)])
def test_exit_status_is_zero_only_while_the_writer_serves(
    service: health.HealthServicer, status: str, expected: int
) -> None:
    service.set("", health_pb2.HealthCheckResponse.ServingStatus.Value(status))
    assert main() == expected


@pytest.mark.parametrize("check", [main, pipeline_main, query_main])
def test_an_unknown_option_is_refused(check: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]) -> None:
    """The checks of the other services refuse it, too."""
    assert check(["--nope"]) == 2
    assert "usage: healthcheck.py (writer | query | pipeline)" in capsys.readouterr().err
