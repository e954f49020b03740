"""docs/cookbook.md: its Python blocks as one program in a new process, then its commands in one shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.pages import DOCS, Terminal, program
from tidemark.testing import TidemarkServer

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PAGE = DOCS / "cookbook.md"


@pytest.fixture(scope="module")
def server() -> Iterator[TidemarkServer]:
    """Run services of a store of their own: other pages have other messages in the same topics."""
    with TidemarkServer() as running:
        yield running


def test_the_recipes_work(server: TidemarkServer, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, server.environment)
    printed = terminal.python(program(PAGE))
    assert "Order(book='Emma', count=1)" in printed
    assert "['Dear reader']" in printed
    assert "[{'book': 'Walden', 'count': 2}]" in printed
    assert "['Return the book']" in printed
    read = {f"{group} {key}" for group in ("billing", "statistics") for key in ("order-1", "order-2")}
    assert read < set(printed.splitlines())
    exported = [row for path in tmp_path.glob("orders-*.parquet") for row in pq.read_table(path)["keys"].to_pylist()]
    assert sorted(exported) == [["order-1"], ["order-2"]]

    printed = terminal.shell(program(PAGE, "sh"))
    assert re.search(r"^lag +2$", printed, re.MULTILINE)
    assert printed.count('"topic":"orders"') == 2


def test_the_recipe_of_sqlite_stores_each_order_once(server: TidemarkServer, tmp_path: Path) -> None:
    """A second run continues at the stored offsets."""
    with server.producer() as producer:
        producer.send("sales", "Emma")
    recipe = program(PAGE).partition("import sqlite3")[2].partition("import threading")[0]
    sale = "from tidemark.client import Consumer\nimport sqlite3" + recipe.replace('"orders"', '"sales"')
    sale += 'print(database.execute("SELECT body FROM sale").fetchall())\n'
    terminal = Terminal(tmp_path, server.environment)
    assert terminal.python(sale) == "[('Emma',)]\n"
    assert terminal.python(sale) == "[('Emma',)]\n"
