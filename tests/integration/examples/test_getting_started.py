"""docs/getting-started.md as a user works through it: its services, then all its commands in one shell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import DOCS, Terminal, blocks

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PAGE = DOCS / "getting-started.md"


def test_each_block_works_as_pasted(tmp_path: Path) -> None:
    for text in blocks(PAGE, "python"):
        (tmp_path / text.partition("\n")[0].removeprefix("# ")).write_text(text)
    start, *commands = blocks(PAGE, "sh")
    script = "".join(f"echo; echo '--- block {number}'\n{text}" for number, text in enumerate(commands))
    with Terminal(tmp_path).serving(start) as terminal:
        printed = terminal.shell(script)
    sent, read, command, python, followed, group, tests = printed.split("--- block ")[1:]
    assert '"queue_offset"' in sent
    assert '"Moby-Dick"' in read
    assert "Emma" in command and command.count("Moby-Dick") == 2  # once of `consume`, once of `get key`
    assert {"order-1 Moby-Dick", "order-2 Emma", "order-3 Walden"} < set(python.splitlines())
    assert all(f'"{book}"' in followed for book in ("Moby-Dick", "Emma", "Walden"))
    assert sorted(re.findall("Moby-Dick|Emma|Walden", group)) == ["Emma", "Moby-Dick", "Walden"]
    assert "1 passed" in tests


def test_the_page_names_the_line_that_says_ready() -> None:
    """Its services are ready when they print it (tests/pages.py waits for it)."""
    assert blocks(PAGE, "text") == ["Ctrl-C stops everything.\n"]
