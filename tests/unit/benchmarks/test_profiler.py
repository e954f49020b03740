"""Recognition of processes by their command lines."""

from __future__ import annotations

import pytest

from benchmarks.profiler import PROCESSES, role_of

_CHILD = ["/venv/bin/python3", "-m", "tidemark.local.child_main"]


@pytest.mark.parametrize(
    ("command_line", "role"),
    [
        ([*_CHILD, "services.writer"], "writer"),
        ([*_CHILD, "tidemark_services.indexer", "query"], "query"),
        ([*_CHILD, "services.indexer", "pipeline", "--once"], "pipeline"),
        (["/venv/bin/python", "-m", "services.indexer.pipeline.spark.daemon", "pyspark.worker"], "worker"),
        (["/venv/bin/python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(…)"], "client"),
        (["/usr/bin/java", "-cp", "pyspark.daemon"], None),
        (["/venv/bin/py-spy", "record", "services.writer"], None),
        ([], None),  # the process has just ended
    ],
)
def test_processes_are_assigned_roles_by_command_line(command_line: list[str], role: str | None) -> None:
    """The command lines are those of this repository's services; any other process has no role."""
    assert role_of(command_line, PROCESSES) == role
