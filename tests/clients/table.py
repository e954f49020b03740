"""Verdicts: the clients and the number of scenarios that they passed, as a table for docs/clients.md."""

from __future__ import annotations

import datetime
from collections import defaultdict


class Verdicts:
    """Passed and failed scenarios by client and system. For one thread."""

    def __init__(self) -> None:
        self._passed: dict[tuple[str, str], list[bool]] = defaultdict(list)

    def add(self, client: str, system: str, *, passed: bool) -> None:
        """Count one scenario. client: title and version."""
        self._passed[client, system].append(passed)

    def lines(self) -> list[str]:
        """Return the table as lines of Markdown, or nothing if nothing ran."""
        if not self._passed:
            return []
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        rows = [
            f"| {client} | {system} | {sum(passed)} of {len(passed)} | {day} |"
            for (client, system), passed in sorted(self._passed.items())
        ]
        return ["| client | system | scenarios passed | day |", "|---|---|---|---|", *rows]
