"""The examples, and a function that runs one with the services' addresses in its environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tidemark.local.local_stack import LocalStack

FOLDER = Path(__file__).resolve().parent
NOTEBOOKS = FOLDER / "notebooks"
TIMEOUT_S = 900


class Example(NamedTuple):
    """One example. tools: programs that it requires besides Python."""

    name: str
    command: tuple[str, ...]
    tools: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """The required tools that this machine lacks."""
        return [tool for tool in self.tools if shutil.which(tool) is None]


def _python(name: str) -> Example:
    return Example(name, (sys.executable, str(FOLDER / f"{name}.py")))


def _notebook(name: str) -> Example:
    return Example(name, (sys.executable, str(FOLDER / "execute_notebook.py"), str(NOTEBOOKS / f"{name}.ipynb")))


EXAMPLES = (
    _python("hello"),
    _python("batch_from_parquet"),
    _python("tail_to_pandas"),
    _python("exactly_once_sqlite"),
    _python("group_of_three"),
    _python("graceful_worker"),
    Example(
        "node",
        ("sh", "-c", f"cd '{FOLDER / 'node'}' && npm ci --silent --prefer-offline && npm start --silent"),
        ("node", "npm"),
    ),
    Example("curl_tour", ("bash", str(FOLDER / "curl_tour.sh")), ("bash", "curl")),
    _notebook("first_look"),
    _notebook("flights_on_spark"),
)


def run_example(example: Example, stack: LocalStack, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run *example* in *folder* against *stack*. The result's stdout contains its stderr, too."""
    addresses = {"TIDEMARK_WRITER_ADDRESS": stack.writer_address, "TIDEMARK_QUERY_URL": stack.query_url}
    return subprocess.run(
        example.command,
        cwd=folder,
        env={**os.environ, **addresses},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
