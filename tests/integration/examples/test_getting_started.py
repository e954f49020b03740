"""docs/getting-started.md as a user works through it: its services, then all its commands in one shell."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.local.local_stack import free_port

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PAGE = Path(__file__).parents[3] / "docs" / "getting-started.md"
PORTS = ("--writer-port", "--query-port", "--writer-remoting-port", "--query-remoting-port")


def blocks(language: str) -> list[str]:
    """Return the text of each block of the page in *language*."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def pasted(text: str, query_port: str) -> str:
    """Return a block of the page for this test's services: curl's address is the only difference."""
    return text.replace("localhost:8080", f"localhost:{query_port}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the user's folder; `python` and `tidemark` are those of this process."""
    (tmp_path / "bin").mkdir()
    for name, words in (("python", ""), ("tidemark", " -m tidemark.cli")):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


@pytest.fixture
def ports(folder: Path) -> Iterator[dict[str, str]]:
    """Run the page's first command on free ports until the test ends; it is ready when it prints the page's line."""
    start, (ready,) = blocks("sh")[0], blocks("text")
    ports = {option: str(free_port()) for option in PORTS}
    command = [*start.split(), *(word for item in ports.items() for word in item)]
    with subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        try:
            lines = iter(served.stdout.readline, "")
            assert any(line == ready for line in lines), f"`serve` ended with status {served.wait()}"
            yield ports
            served.send_signal(signal.SIGINT)
            assert served.wait(timeout=60) == 0
        finally:
            served.terminate()


def environment(folder: Path, **addresses: str) -> dict[str, str]:
    """Return the environment of a terminal."""
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": "120", **addresses}


def test_each_block_works_as_pasted(folder: Path, ports: dict[str, str]) -> None:
    for text in blocks("python"):
        (folder / text.partition("\n")[0].removeprefix("# ")).write_text(text)
    writer, query = ports["--writer-port"], ports["--query-port"]
    addresses = {"TIDEMARK_WRITER_ADDRESS": f"127.0.0.1:{writer}", "TIDEMARK_QUERY_URL": f"http://127.0.0.1:{query}"}
    commands = [pasted(text, query) for text in blocks("sh")[1:]]
    script = "".join(f"echo; echo '--- block {number}'\n{text}" for number, text in enumerate(commands))
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=environment(folder, **addresses),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sent, read, command, python, followed, group, tests = done.stdout.split("--- block ")[1:]
    assert '"queue_offset"' in sent
    assert '"Moby-Dick"' in read
    assert "Emma" in command and command.count("Moby-Dick") == 2  # once of `consume`, once of `get key`
    assert {"order-1 Moby-Dick", "order-2 Emma", "order-3 Walden"} < set(python.splitlines())
    assert all(f'"{book}"' in followed for book in ("Moby-Dick", "Emma", "Walden"))
    assert sorted(re.findall("Moby-Dick|Emma|Walden", group)) == ["Emma", "Moby-Dick", "Walden"]
    assert "1 passed" in tests
