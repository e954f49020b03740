"""docs/cookbook.md: its Python blocks as one program in a new process, then its commands in one shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tidemark.testing import TidemarkServer

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PAGE = Path(__file__).parents[3] / "docs" / "cookbook.md"


def blocks(language: str) -> str:
    """Return all blocks of the page in *language*; a line number of the program is that of the page."""
    lines, is_wanted = [], False
    for line in PAGE.read_text().splitlines():
        is_wanted = is_wanted and line != "```"
        lines.append(line if is_wanted else "")
        is_wanted = is_wanted or line == f"```{language}"
    return "\n".join(lines) + "\n"


def run(command: list[str], folder: Path, server: TidemarkServer) -> str:
    """Return the output of *command*, which must end with status 0."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "tidemark").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tidemark.cli "$@"\n')
    (folder / "bin" / "tidemark").chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **server.environment, "PATH": path}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_recipes_work(tidemark_server: TidemarkServer, tmp_path: Path) -> None:
    """A user's terminal has the same environment; only curl's address is replaced."""
    (tmp_path / "recipes.py").write_text(blocks("python"))
    printed = run([sys.executable, "recipes.py"], tmp_path, tidemark_server)
    assert "Order(book='Emma', count=1)" in printed
    assert "['Dear reader']" in printed
    assert "[{'book': 'Walden', 'count': 2}]" in printed
    assert "['Return the book']" in printed
    read = {f"{group} {key}" for group in ("billing", "statistics") for key in ("order-1", "order-2")}
    assert read < set(printed.splitlines())
    exported = [row for path in tmp_path.glob("orders-*.parquet") for row in pq.read_table(path)["keys"].to_pylist()]
    assert sorted(exported) == [["order-1"], ["order-2"]]

    address = tidemark_server.query_url.removeprefix("http://")
    commands = blocks("sh").replace("localhost:8080", address)
    printed = run(["bash", "-e", "-o", "pipefail", "-c", commands], tmp_path, tidemark_server)
    assert re.search(r"^lag +2$", printed, re.MULTILINE)
    assert printed.count('"topic":"orders"') == 2


def test_the_recipe_of_sqlite_stores_each_order_once(tidemark_server: TidemarkServer, tmp_path: Path) -> None:
    """A second run continues at the stored offsets."""
    with tidemark_server.producer() as producer:
        producer.send("sales", "Emma")
    recipe = blocks("python").partition("import sqlite3")[2].partition("import threading")[0]
    program = "from tidemark.client import Consumer\nimport sqlite3" + recipe.replace('"orders"', '"sales"')
    (tmp_path / "sale.py").write_text(program + 'print(database.execute("SELECT body FROM sale").fetchall())\n')
    assert run([sys.executable, "sale.py"], tmp_path, tidemark_server) == "[('Emma',)]\n"
    assert run([sys.executable, "sale.py"], tmp_path, tidemark_server) == "[('Emma',)]\n"
