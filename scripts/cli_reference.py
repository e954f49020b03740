"""Writes docs/cli.md from the command's own help: `make docs`; a test compares them."""

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

`make docs` writes this page from the command's own help.

The text output of a verb may change between versions; programs should use `--output json`.
It prints one document, or one line per item of a stream, and nothing else to standard output.
Messages go to standard error; with `--output json` each one is a line of JSON with the stable `reason`.
If the reader closes the pipe, as in `consume … | head`, the command ends without an error.

## Exit statuses

| status | name | meaning |
|--:|---|---|
"""


def page() -> str:
    """Return the content of docs/cli.md."""
    rows = [f"| {status.value} | `{status.name}` | {meaning} |\n" for status, meaning in MEANINGS.items()]
    return _HEAD + "".join(rows) + "\n" + _reference()


def _reference() -> str:
    """Return usage, arguments, options and an example of every verb."""
    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), indent=1, name="tidemark")
    return re.sub(r"^Example: (.*)$", r"**Example**: `\1`", text.strip(), flags=re.MULTILINE) + "\n"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(page()) else 1)
