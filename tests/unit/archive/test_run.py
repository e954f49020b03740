"""The number of tasks of a run."""

from __future__ import annotations

import pytest

from tidemark.archive.run import read_tasks

_MIB = 1 << 20


@pytest.mark.parametrize(
    ("log_bytes", "tasks"),
    [(0, 2), (1, 2), (24 * _MIB, 3), (64 * _MIB, 8), (1024 * _MIB, 8), (1025 * _MIB, 9)],
)
def test_a_task_reads_8_to_128_mib_and_each_core_has_one(log_bytes: int, tasks: int) -> None:
    """With two cores: a small log is divided, so that its progress is shown in steps."""
    assert read_tasks(log_bytes, 2) == tasks
