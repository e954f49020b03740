"""Progress of `tidemark archive` on standard error: a bar on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, TextIO

import typer

from tidemark.archive.progress import Progress, StepProgress, no_progress

QuietOption = Annotated[
    bool, typer.Option("--quiet", help="Show no progress. Default: show it on standard error, unless --output json.")
]
_LINE_S = 5.0


@contextlib.contextmanager
def shown_progress(*, quiet: bool) -> Iterator[Progress]:
    """Provide a function that shows progress until the end of the `with` block; quiet: it shows nothing."""
    if quiet:
        yield no_progress
    elif sys.stderr.isatty():
        with _bar() as progress:
            yield progress
    else:
        yield ProgressLines(sys.stderr)


@contextlib.contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"))
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task, clock = bars.add_task("planning", total=None), _StepClock(time.monotonic)

        def show(progress: StepProgress) -> None:
            text = summary(progress, clock.seconds(progress.step))
            bars.update(task, description=text, completed=progress.done, total=progress.total or None)

        yield show


class ProgressLines:
    """Prints a line to *stream* when a step begins, and then at most every _LINE_S seconds of *clock*."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = _StepClock(clock)
        self._next_s = 0.0

    def __call__(self, progress: StepProgress) -> None:
        """Print *progress* if it is time."""
        seconds = self._clock.seconds(progress.step)
        if seconds and seconds < self._next_s:
            return
        self._next_s = seconds + _LINE_S
        print(summary(progress, seconds), file=self._stream, flush=True)


class _StepClock:
    """Clock of the running step."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._now = clock
        self._step = ""
        self._began = 0.0

    def seconds(self, step: str) -> float:
        """Return the seconds since the first call for *step*; that call returns 0."""
        if step != self._step:
            self._step, self._began = step, self._now()
            return 0.0
        return self._now() - self._began


def summary(progress: StepProgress, seconds: float) -> str:
    """Return the progress of a step that began *seconds* ago: `writing: 20 of 50 messages, 2 files, 5 s, 4/s`."""
    if not progress.all_messages:
        return progress.step
    counts = [f"{progress.messages:,} of {progress.all_messages:,} messages"]
    if progress.files:
        counts.append(f"{progress.files:,} files" if progress.files > 1 else "1 file")
    if seconds:
        counts.append(f"{seconds:.0f} s")
    if progress.messages and seconds:
        counts.append(f"{progress.messages / seconds:,.0f}/s")
    return f"{progress.step}: {', '.join(counts)}"
