"""Progress of a run's or verification's steps, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class StepProgress(NamedTuple):
    """Progress of one step. done, total: its Spark tasks known so far, or files to verify; total 0: the step begins.

    messages  messages so far: read, or written to complete files; all_messages: of the step, 0 if it reads none
    files     complete files so far, 0 unless the step writes or verifies files
    """

    step: str
    done: int = 0
    total: int = 0
    messages: int = 0
    all_messages: int = 0
    files: int = 0


Progress = Callable[[StepProgress], None]


def no_progress(progress: StepProgress) -> None:
    """Ignore *progress*."""
