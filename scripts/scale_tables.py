"""Writes the tables of docs/scale.md from the model and benchmarks/scale/constants.json: `make scale`, `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from benchmarks.scale.constants import load
from benchmarks.scale.tables import parts

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
_END = "<!-- scale end -->"


def page_with(text: str, tables: dict[str, str]) -> str:
    """Return *text* with each table between its two marks. Raises ValueError if a table or its marks are missing."""
    pattern = re.compile(rf"<!-- scale: (?P<name>[a-z ]+) -->\n.*?{re.escape(_END)}", re.DOTALL)
    named = [found["name"] for found in pattern.finditer(text)]
    if sorted(named) != sorted(tables):
        raise ValueError(f"the page has marks for the tables {sorted(named)}, but the tables are {sorted(tables)}")
    return pattern.sub(lambda found: f"<!-- scale: {found['name']} -->\n{tables[found['name']]}\n{_END}", text)


def current_page() -> str:
    """Return the page with current tables."""
    return page_with(PAGE.read_text(), parts(load()))


if __name__ == "__main__":
    PAGE.write_text(current_page())
    sys.exit(0)
