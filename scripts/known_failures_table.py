"""Writes the list of known failures into docs/guarantees.md: `make docs`; a test compares them.

The docstring of each test_kf<number>_… describes a failure elsewhere, and after "; here" Tidemark's behaviour.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "guarantees.md"
TESTS = ROOT / "tests"
FOLDER = "tests/crash/known_failures/"  # of most tests; left out in the list
HEADING = "## Known failures\n"
_NAME = re.compile(r"test_kf([0-9]{2})_")
_THREAD = re.compile(r"\b((?:alibaba/)?rocketmq)#([0-9]+)")
_INTRODUCTION = (
    "Other trusted logs had these failures. Each test, in `tests/crash/known_failures` if it names no folder, shows "
    "that Tidemark does not."
)


class KnownFailure(NamedTuple):
    """One test. number: of the failure; several tests may share it, and the first one describes the failure."""

    number: int
    elsewhere: str
    here: str
    place: str


def known_failures() -> list[KnownFailure]:
    """Return all known failures, sorted by number. Raises ValueError for a docstring without "; here "."""
    found = []
    for path in sorted(path for path in TESTS.rglob("test_*.py") if "def test_kf" in path.read_text()):
        for node in ast.parse(path.read_text()).body:
            match = _NAME.match(node.name) if isinstance(node, ast.FunctionDef) else None
            if match is None or not isinstance(node, ast.FunctionDef):
                continue
            text = " ".join((ast.get_docstring(node) or "").split()).removesuffix(".")
            elsewhere, separator, here = text.partition("; here ")
            if not separator:
                raise ValueError(
                    f'{node.name}: the docstring lacks "; here " and a description of Tidemark\'s behaviour'
                )
            place = f"{path.relative_to(ROOT).as_posix()}::{node.name}"
            found.append(KnownFailure(int(match[1]), elsewhere, here, place))
    return sorted(found, key=lambda failure: failure.number)


def numbered_list() -> str:
    """Return the list as Markdown, one line per failure."""
    lines = []
    failures = known_failures()
    for number in sorted({failure.number for failure in failures}):
        same = [failure for failure in failures if failure.number == number]
        tests = ", ".join(f"`{failure.place.removeprefix(FOLDER)}`" for failure in same)
        lines.append(f"{number}. {_linked(same[0].elsewhere)}. *Here* {same[0].here}: {tests}")
    return "\n".join(lines) + "\n"


def _linked(text: str) -> str:
    def link(match: re.Match[str]) -> str:
        repository = match[1] if "/" in match[1] else f"apache/{match[1]}"
        return f"[{match[0]}](https://github.com/{repository}/issues/{match[2]})"

    return _THREAD.sub(link, text)


def with_list(page: str) -> str:
    """Return *page* with a new list between this heading and the next."""
    head, heading, rest = page.partition(HEADING)
    _, following, tail = rest.partition("\n## ")
    return f"{head}{heading}\n{_INTRODUCTION}\n\n{numbered_list()}{following}{tail}"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(with_list(PAGE.read_text())) else 1)
