"""docs/client.md: every ```python block runs, in order, with one set of names, against running services."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tidemark.cli.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

PAGE = Path(__file__).parents[3] / "docs" / "client.md"


def blocks(page: str) -> list[tuple[int, str]]:
    """(line of the page, text) of each block."""
    found = re.finditer(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [(page.count("\n", 0, block.start(1)), block[1]) for block in found]


def test_every_block_of_the_client_page_runs(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a reader would type it, beside the store's folder `data`; lines of errors are lines of the page."""
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
