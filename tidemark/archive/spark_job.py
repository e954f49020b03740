"""Execution of a run's steps by Spark: progress and causes of failures."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from tidemark import errors
from tidemark.archive.progress import Progress, StepProgress
from tidemark.errors import StoreError, UnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_S = 0.2
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+Error): (.*)$", re.MULTILINE)  # last line of a Python traceback
_CLASSES = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, StoreError)
}


class WrittenFiles:
    """Counts of complete files and their messages; tasks add to them, and Spark reports them at each task's end."""

    def __init__(self, session: SparkSession) -> None:
        self._files, self._messages = (session.sparkContext.accumulator(0) for _ in range(2))

    def add(self, messages: int) -> None:
        """Count a file with this many messages."""
        self._files.add(1)
        self._messages.add(messages)

    @property
    def files(self) -> int:
        """Number of files."""
        return self._files.value

    @property
    def messages(self) -> int:
        """Number of their messages."""
        return self._messages.value


@contextlib.contextmanager
def step(
    session: SparkSession, name: str, on_progress: Progress, *, messages: int, written: WrittenFiles | None = None
) -> Iterator[None]:
    """Run the body as one step of a job: report its progress, and raise our own error if a task raised one.

    messages  number of messages that the step reads
    written   counts of a step that writes files

    Raises the StoreError leaf that a task raised, or UnavailableError for any other failure of the job.
    """
    on_progress(StepProgress(name, all_messages=messages))
    done = threading.Event()
    watched = _Step(session, StepProgress(name, all_messages=messages), written)
    watch = threading.Thread(target=watched.report_until, args=(done, on_progress), daemon=True)
    watch.start()
    try:
        yield
    except PySparkException as error:
        raise cause_of(error) from error
    finally:
        done.set()
        watch.join()


class _Step:
    """The stages of one step, which are those that run while it is watched."""

    def __init__(self, session: SparkSession, begin: StepProgress, written: WrittenFiles | None) -> None:
        self._tracker = session.sparkContext.statusTracker()
        self._store = session.sparkContext._jsc.sc().statusStore()
        self._stages: set[int] = set()
        self._begin, self._written = begin, written

    def report_until(self, done: threading.Event, on_progress: Progress) -> None:
        """Report every _LOOK_S seconds until *done* is set."""
        while not done.wait(_LOOK_S):
            self._stages.update(self._tracker.getActiveStageIds())
            if self._stages:
                on_progress(self._now())

    def _now(self) -> StepProgress:
        known = {stage: info for stage in self._stages if (info := self._tracker.getStageInfo(stage)) is not None}
        tasks = self._begin._replace(
            done=sum(one.numCompletedTasks for one in known.values()), total=sum(one.numTasks for one in known.values())
        )
        if self._written is not None:
            return tasks._replace(messages=self._written.messages, files=self._written.files)
        read = sum(self._store.lastStageAttempt(stage).inputRecords() for stage in known)
        return tasks._replace(messages=min(read, tasks.all_messages))


def cause_of(error: PySparkException) -> StoreError:
    """Return our error that a task raised; otherwise UnavailableError with the first line of Spark's message."""
    text = str(error).split("\nJVM stacktrace", maxsplit=1)[0]
    for name, message in reversed(_RAISED.findall(text)):
        if name in _CLASSES:
            return _CLASSES[name](message)
    return UnavailableError(f"the Spark job failed: {first_line(error)}")


def first_line(error: Exception) -> str:
    """Return the first line of Spark's message."""
    found = error.java_exception if isinstance(error, Py4JJavaError) else error
    return next((line for line in str(found).splitlines() if line.strip()), type(error).__name__)
