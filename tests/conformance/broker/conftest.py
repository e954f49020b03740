"""The versions of the real broker, and the counts of the rounds with it at the end of the run.

CONFORMANCE_BROKERS  versions from Maven Central, separated by commas; default 5.3.3. `make conformance` adds 5.5.1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from benchmarks.peers.toolchain import ROCKETMQ

from .counts import COUNTS, SEEDS
from .real_broker import BROKER_VERSION

VERSIONS = (os.environ.get("CONFORMANCE_BROKERS") or ROCKETMQ.version).split(",")


@pytest.fixture(scope="session", autouse=True, params=VERSIONS)
def broker_version(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run each test of this folder with each version."""
    version = str(request.param)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(BROKER_VERSION, version)
        yield version


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print rounds, kills, messages and seeds."""
    if COUNTS:
        terminalreporter.section("rounds with a real broker")
        for name, count in sorted(COUNTS.items()):
            terminalreporter.line(f"{count:>8,}  {name}")
        terminalreporter.line(f"seeds: {', '.join(SEEDS)}")
