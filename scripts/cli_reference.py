"""Writes docs/cli.md from the command itself: `make docs`; a test compares them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import typer
from typer.cli import get_docs_for_click
from typer.main import get_command

from tidemark.cli.main import app
from tidemark.cli.terminal.exit_status import MEANINGS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
_HEAD = """# The `tidemark` command

Written by `make docs` from the command itself.

What a verb prints for people may change; `--output json` is for programs: one document, or of streams one line an item,
and nothing else on standard output. Messages go to standard error, with `--output json` as one line of JSON that has
the stable `reason`. `consume … | head` is no failure: a reader that ends the pipe ends the command, quietly.

## Exit statuses

| status | name | meaning |
|--:|---|---|
"""


def page() -> str:
    """All of docs/cli.md."""
    rows = [f"| {status.value} | `{status.name}` | {meaning} |\n" for status, meaning in MEANINGS.items()]
    return _HEAD + "".join(rows) + "\n" + _reference()


def _reference() -> str:
    """Every verb: usage, arguments, options, example."""
    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), indent=1, name="tidemark")
    return re.sub(r"^Example: (.*)$", r"**Example**: `\1`", text.strip(), flags=re.MULTILINE) + "\n"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(page()) else 1)
