"""A cluster, the services on it under load, and a place to say what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.follow_run import FollowRun
from tests.cluster.standalone import Standalone

_lines: list[str] = []


@pytest.fixture
def tell() -> Callable[[str], None]:
    """One line for the end of the run."""
    return _lines.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _lines:
        terminalreporter.section("on a Spark cluster")
        for line in _lines:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def standalone() -> Iterator[Standalone]:
    """A master and two workers, each of which has slots for all."""
    with Standalone() as standalone:
        yield standalone


@pytest.fixture
def cluster(standalone: Standalone) -> Standalone:
    """All of it at work, and nobody's, whatever the test before has killed."""
    standalone.repair()
    return standalone


@pytest.fixture
def run(tmp_path: Path, cluster: Standalone) -> Iterator[FollowRun]:
    """Writer, pipeline on the cluster, and query, under load, for longer than an epoch."""
    with FollowRun(tmp_path, cluster) as run:
        yield run
