"""Runs the blocks of a page as its reader would: in a terminal of an activated environment, in an empty folder."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.fixed_ports import fixed_port

DOCS = Path(__file__).parents[1] / "docs"
_PORTS = ("--writer-port", "--query-port", "--writer-remoting-port", "--query-remoting-port")


def blocks(page: Path, language: str) -> list[str]:
    """Return the text of each block of *page* in *language*."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def program(page: Path, language: str = "python") -> str:
    """Return all blocks of *page* in *language* as one program; a line has the number that it has on the page."""
    lines, is_wanted = [], False
    for line in page.read_text().splitlines():
        is_wanted = is_wanted and line != "```"
        lines.append(line if is_wanted else "")
        is_wanted = is_wanted or line == f"```{language}"
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Terminal:
    """Runs what a user types in *folder*.

    The services of a test have other ports than those of the pages: Tidemark's programs find them by the *addresses*
    in the environment, and curl's address is replaced. *errors* gets what each run wrote to standard error.
    """

    folder: Path
    addresses: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of the activated environment."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, **self.addresses, "PATH": path, "COLUMNS": "120", "SPARK_LOCAL_IP": "127.0.0.1"}

    def python(self, text: str, timeout_s: float = 300) -> str:
        """Run *text* as a program and return its output."""
        (self.folder / "page.py").write_text(text)
        return self._run([sys.executable, "page.py"], timeout_s)

    def shell(self, text: str, timeout_s: float = 300) -> str:
        """Paste *text* into a shell, which ends at the first command that fails, and return the output."""
        if url := self.addresses.get("TIDEMARK_QUERY_URL"):
            text = text.replace("localhost:8080", url.removeprefix("http://"))
        return self._run(["bash", "-e", "-o", "pipefail", "-c", text], timeout_s)

    def _run(self, command: list[str], timeout_s: float) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
        self.errors.append(done.stderr)
        return done.stdout

    @contextlib.contextmanager
    def serving(self, command: str) -> Iterator[Terminal]:
        """Run *command*, a `tidemark serve`, on free ports, and give a second terminal when its services are ready."""
        ports = {option: str(fixed_port()) for option in _PORTS}
        arguments = [*command.split(), *(word for item in ports.items() for word in item)]
        with subprocess.Popen(
            arguments, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        ) as served:
            assert served.stdout is not None
            try:
                lines = iter(served.stdout.readline, "")
                assert any(line == "Ctrl-C stops everything.\n" for line in lines), f"it ended with {served.wait()}"
                writer, query = (f"127.0.0.1:{ports[option]}" for option in _PORTS[:2])
                yield Terminal(
                    self.folder, {"TIDEMARK_WRITER_ADDRESS": writer, "TIDEMARK_QUERY_URL": f"http://{query}"}
                )
                served.send_signal(signal.SIGINT)
                assert served.wait(timeout=60) == 0
            finally:
                served.terminate()
