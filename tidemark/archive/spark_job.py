"""Execution of a run's steps by Spark: progress and causes of failures."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from tidemark import errors
from tidemark.errors import StoreError, UnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_S = 0.2
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+Error): (.*)$", re.MULTILINE)  # last line of a Python traceback
_CLASSES = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, StoreError)
}
Progress = Callable[[str, int, int], None]  # (step, tasks done, tasks known)


@contextlib.contextmanager
def step(session: SparkSession, name: str, on_progress: Progress) -> Iterator[None]:
    """Run the body as one step of a job: report its tasks, and raise our own error if a task raised one.

    Raises the StoreError leaf that a task raised, or UnavailableError for any other failure of the job.
    """
    on_progress(name, 0, 0)
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(session, name, on_progress, done), daemon=True)
    watch.start()
    try:
        yield
    except PySparkException as error:
        raise cause_of(error) from error
    finally:
        done.set()
        watch.join()


def _watch(session: SparkSession, name: str, on_progress: Progress, done: threading.Event) -> None:
    tracker = session.sparkContext.statusTracker()
    seen: dict[int, tuple[int, int]] = {}
    while not done.wait(_LOOK_S):
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                seen[stage] = info.numCompletedTasks, info.numTasks
        if seen:
            on_progress(name, sum(one[0] for one in seen.values()), sum(one[1] for one in seen.values()))


def cause_of(error: PySparkException) -> StoreError:
    """Return our error that a task raised; otherwise UnavailableError with the first line of Spark's message."""
    text = str(error).split("\nJVM stacktrace", maxsplit=1)[0]
    for name, message in reversed(_RAISED.findall(text)):
        if name in _CLASSES:
            return _CLASSES[name](message)
    lines = [line for line in text.splitlines() if line.strip()]
    return UnavailableError(f"the Spark job failed: {lines[0] if lines else type(error).__name__}")
