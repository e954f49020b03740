"""The counts of the rounds with a real broker, at the end of the run."""

from __future__ import annotations

import pytest

from .counts import COUNTS, SEEDS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Rounds, kills, messages, seeds."""
    if COUNTS:
        terminalreporter.section("rounds with a real broker")
        for name, count in sorted(COUNTS.items()):
            terminalreporter.line(f"{count:>8,}  {name}")
        terminalreporter.line(f"seeds: {', '.join(SEEDS)}")
