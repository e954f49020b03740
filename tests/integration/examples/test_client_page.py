"""The ```python blocks of docs/client.md are one program, which runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import DOCS, Terminal, program
from tidemark.testing import TidemarkServer

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_the_page_is_a_program(tidemark_server: TidemarkServer, tmp_path: Path) -> None:
    """It runs next to the store's folder `data`."""
    (tmp_path / "data").symlink_to(tidemark_server.stack.data)
    printed = Terminal(tmp_path, tidemark_server.environment).python(program(DOCS / "client.md"))
    read = [line for line in printed.splitlines() if "order-" in line]
    assert any(line.endswith("('order-1',) one book") for line in read), printed
    assert any(line.endswith("('order-99',) book 99") for line in read), printed
    assert "['Emma']" in printed.splitlines()
    assert "{'id': 'order-101', 'kind': 'books', 'price': 12.5}" in printed.splitlines()
    assert printed.splitlines()[-1] == "a film"
