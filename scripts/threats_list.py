"""Writes the list of threats into docs/security.md from docs/threats.toml: `make docs`.

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
_ABOUT = """Each threat, its defence, and the tests that show it.
`make fuzz` and `make security-test` try more.
`make supply-chain` asks OSV about each locked version; without a connection it fails only with `SUPPLY_CHAIN=--strict`.
"""


class Threat(NamedTuple):
    """An item of the list. tests: pytest's node ids, without parameters."""

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


def as_list() -> str:
    """Return the list as Markdown."""
    items = [
        f"- **{threat[0].upper()}{threat[1:]}**: {defence}.\n  {' '.join(f'`{test}`' for test in tests)}"
        for threat, defence, tests in threats()
    ]
    return "\n".join(items) + "\n"


def with_list(page: str) -> str:
    """Return *page* with a new list after its last heading."""
    head, heading, _ = page.partition(HEADING)
    return f"{head}{heading}\n{_ABOUT}\n{as_list()}"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(with_list(PAGE.read_text())) else 1)
