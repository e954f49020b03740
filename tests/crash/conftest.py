"""What the exhaustive suites looked at is printed at the end: seeds and counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

_lines: list[str] = []


@pytest.fixture
def tell() -> Callable[[str], None]:
    """One line for the end of the run."""
    return _lines.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _lines:
        terminalreporter.section("crash states")
        for line in _lines:
            terminalreporter.line(line)
