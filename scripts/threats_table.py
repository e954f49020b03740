"""Writes the table of threats into docs/security.md from docs/threats.toml: `make docs`.

A test compares them, and checks that every named test exists.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from typing import NamedTuple

from scripts.lock import ROOT

PAGE = ROOT / "docs" / "security.md"
DATA = ROOT / "docs" / "threats.toml"
HEADING = "## Threats\n"
_ABOUT = """Each threat with its defence and the tests that show it; the source is `docs/threats.toml`.
"""


class Threat(NamedTuple):
    """A row of the table. tests: pytest's node ids, without parameters."""

    entry: str
    threat: str
    defence: str
    tests: list[str]


def threats() -> list[Threat]:
    """Return the threats in the file's order."""
    return [Threat(**row) for row in tomllib.loads(DATA.read_text())["threat"]]


def is_there(test: str) -> bool:
    """Return True if *test* exists in its file."""
    path, _, name = test.partition("::")
    file = ROOT / path
    if not file.is_file():
        return False
    found = ast.walk(ast.parse(file.read_text()))
    return any(isinstance(node, ast.FunctionDef) and node.name == name and name.startswith("test_") for node in found)


def table() -> str:
    """Return the table as Markdown."""
    lines = ["| where | threat | defence | shown by |", "|---|---|---|---|"]
    for entry, threat, defence, tests in threats():
        lines.append(f"| {entry} | {threat} | {defence} | {' '.join(f'`{test}`' for test in tests)} |")
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """Return *page* with a new table after its last heading."""
    head, heading, _ = page.partition(HEADING)
    return f"{head}{heading}\n{_ABOUT}\n{table()}"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(with_table(PAGE.read_text())) else 1)
