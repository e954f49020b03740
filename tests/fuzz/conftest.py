"""Divide the time of a run among its targets, and print the facts that repeat the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.target import RUN, told

_FOLDER = Path(__file__).parent
_GRACE_S = 180  # for a round that began within the share, and the shrinking of its result


def pytest_report_header() -> str | None:
    return f"fuzz: {RUN.seconds:g} s from FUZZ_SEED={RUN.seed}" if RUN.seconds else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not RUN.seconds:
        return
    targets = [item for item in items if _FOLDER in item.path.parents]
    RUN.share_among(len(targets))
    for item in targets:
        item.add_marker(pytest.mark.timeout(RUN.share_s + _GRACE_S))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if told():
        terminalreporter.section("fuzz")
        for line in told():
            terminalreporter.line(line)
