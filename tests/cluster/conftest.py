"""A cluster, and the services on it under load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.follow_run import FollowRun
from tests.cluster.standalone import Standalone


@pytest.fixture(scope="session")
def standalone() -> Iterator[Standalone]:
    """Run a master and two workers, each of which has slots for all tasks."""
    with Standalone() as standalone:
        yield standalone


@pytest.fixture
def cluster(standalone: Standalone) -> Standalone:
    """Return a complete cluster without applications, whatever the previous test has killed."""
    standalone.repair()
    return standalone


@pytest.fixture
def run(tmp_path: Path, cluster: Standalone) -> Iterator[FollowRun]:
    """Run writer, pipeline on the cluster, and query under load, for longer than an epoch."""
    with FollowRun(tmp_path, cluster) as run:
        yield run
