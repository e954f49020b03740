"""The lines that state each client's durability, for the output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from benchmarks.peers.peer import Flush
from benchmarks.peers.python.rows import ROWS


class _HasNames(Protocol):
    @property
    def ours(self) -> Sequence[str]: ...


def durability_lines(rounds: Iterable[_HasNames]) -> list[str]:
    """Return a line for each flush mode and system that *rounds* of the rows python_* use."""
    names = {name for each in rounds for name in each.ours}
    lines = [
        f"durability, {flush.value} rows: {system.title}: {system.durability(flush)}"
        for flush in Flush
        for row in ROWS
        if row.key in names and row.flush is flush
        for system in row.systems
    ]
    return list(dict.fromkeys(lines))
