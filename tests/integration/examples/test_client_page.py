"""Every ```python block of docs/client.md and of README.md runs, in order, in one namespace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
PAGE, README = ROOT / "docs" / "client.md", ROOT / "README.md"


def blocks(page: str) -> list[tuple[int, str]]:
    """Return (line of the page, text) of each block."""
    found = re.finditer(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [(page.count("\n", 0, block.start(1)), block[1]) for block in found]


def test_every_block_of_the_client_page_runs(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run as typed, next to the store's folder `data`; line numbers of errors are those of the page."""
    monkeypatch.setenv("TIDEMARK_WRITER_ADDRESS", stack.writer_address)
    monkeypatch.setenv("TIDEMARK_QUERY_URL", stack.query_url)
    monkeypatch.chdir(stack.data.parent)
    names: dict[str, Any] = {"__name__": "__main__"}
    found = blocks(PAGE.read_text())
    for line, text in found:
        exec(compile("\n" * line + text, PAGE, "exec"), names)
    assert len(found) >= 10
    assert names["sent"].count == 1
    assert names["messages"]
    assert len(names["handled"]) >= 100


def test_the_readme_runs(
    stack: LocalStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its default addresses are replaced by those of the test's services."""
    monkeypatch.setenv("TIDEMARK_QUERY_URL", stack.query_url)
    names: dict[str, Any] = {"__name__": "__main__"}
    for line, text in blocks(README.read_text()):
        here = text.replace("127.0.0.1:8081", stack.writer_address)
        exec(compile("\n" * line + here, README, "exec"), names)
    assert names["sent"].topic == "orders"
    out = capsys.readouterr().out
    assert " hello A\n" in out, out[-3000:]
