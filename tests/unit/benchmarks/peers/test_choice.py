"""Systems that cannot run on this machine."""

from __future__ import annotations

import pytest

from benchmarks.peers import choice
from benchmarks.peers.choice import choose
from benchmarks.peers.goals import Better, Goal
from benchmarks.peers.python.systems import BEST, NATS, REDIS, TIDEMARK_GRPC, System
from benchmarks.peers.toolchain import ToolchainMissingError
from benchmarks.peers.workloads import Workload

KEY = "python_send_async"
AGAINST_BEST, AGAINST_NATS = (Goal(KEY, KEY, product, Better.HIGHER, 1) for product in (BEST, NATS))
WORKLOADS = [Workload(system, (KEY,), lambda _, __: []) for system in (TIDEMARK_GRPC, NATS, REDIS)]


def _miss(monkeypatch: pytest.MonkeyPatch, *missing: System) -> None:
    def require(system: System) -> None:
        if system in missing:
            raise ToolchainMissingError(f"{system.server}-server is missing")

    monkeypatch.setattr(choice, "require", require)


def test_a_client_that_cannot_be_installed_is_skipped_with_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own goal is skipped too; the goal of the best client is judged without it, and the results say so."""
    _miss(monkeypatch, NATS)
    chosen = choose([AGAINST_BEST, AGAINST_NATS], WORKLOADS)
    assert chosen.goals == [AGAINST_BEST]
    assert [workload.product for workload in chosen.workloads] == [TIDEMARK_GRPC, REDIS]
    assert chosen.skipped == {"skipped: nats-py": "nats-server is missing"}
    assert capsys.readouterr().err.splitlines() == [
        "skipped: nats-py, because nats-server is missing",
        f"skipped: {KEY}, because nats-py is missing",
    ]


def test_without_another_client_there_is_no_best_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tidemark's second wire is not a peer."""
    _miss(monkeypatch, NATS, REDIS)
    assert choose([AGAINST_BEST], WORKLOADS).goals == []
