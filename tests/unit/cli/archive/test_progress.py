"""Progress of archives as text."""

from __future__ import annotations

import io

import pytest

from tidemark.archive.progress import StepProgress
from tidemark.cli.archive.progress import ProgressLines, summary


@pytest.mark.parametrize(
    ("progress", "seconds", "text"),
    [
        (StepProgress("starting Spark"), 9.0, "starting Spark"),
        (StepProgress("reading", all_messages=5000), 0.0, "reading: 0 of 5,000 messages"),
        (StepProgress("reading", all_messages=5000), 5.0, "reading: 0 of 5,000 messages, 5 s"),
        (
            StepProgress("writing", messages=3000, all_messages=5000, files=1),
            2.0,
            "writing: 3,000 of 5,000 messages, 1 file, 2 s, 1,500/s",
        ),
    ],
)
def test_a_line_has_messages_files_time_and_rate(progress: StepProgress, seconds: float, text: str) -> None:
    assert summary(progress, seconds) == text


def test_lines_come_with_each_step_and_every_five_seconds() -> None:
    """The clock is of the running step, whose rate it gives."""
    times = iter([0.0, 100.0, 101.0, 105.0, 106.0, 111.0, 111.5])
    shown = io.StringIO()
    show = ProgressLines(shown, lambda: next(times))
    show(StepProgress("starting Spark"))
    for messages in (0, 10, 20, 30, 44):
        show(StepProgress("reading", messages=messages, all_messages=50))
    show(StepProgress("writing", all_messages=44))
    assert shown.getvalue().splitlines() == [
        "starting Spark",
        "reading: 0 of 50 messages",
        "reading: 20 of 50 messages, 5 s, 4/s",
        "reading: 44 of 50 messages, 11 s, 4/s",
        "writing: 0 of 44 messages",
    ]
