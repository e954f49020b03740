"""The shell's completion of topics, groups and contexts, as its scripts ask for them."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.cli.conftest import COMMAND, Tidemark

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def names(tidemark: Tidemark) -> None:
    """Create two topics and a group, and a topic of that group."""
    for topic in ("completed-a", "completed-b", "%DLQ%completing"):
        tidemark.json("topic", "create", topic)
    reset = ("group", "reset", "completing", "--topic", "completed-a", "--to", "latest", "--yes")
    tidemark.json(*reset)


def _completed(tidemark: Tidemark, line: str, **environment: str) -> list[str]:
    """Return the completions of the last word of *line*, as bash gets them; there is no error."""
    words = line.split(" ")
    asked = {"_TIDEMARK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        COMMAND,
        env={**tidemark.environment, **asked, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("tidemark consume completed", ["completed-a", "completed-b"]),
        ("tidemark consume completed-b", ["completed-b"]),
        ("tidemark produce comp", ["completed-a", "completed-b"]),
        ("tidemark topic show comp", ["completed-a", "completed-b"]),
        ("tidemark topic create comp", []),
        ("tidemark topic show %DLQ%comp", ["%DLQ%completing"]),
        ("tidemark topic show DLQ", []),
        ("tidemark group reset completing --topic comp", ["completed-a", "completed-b"]),
        ("tidemark group show comp", ["completing"]),
        ("tidemark dlq show comp", ["completing"]),
        ("tidemark consume completed-a --group comp", ["completing"]),
        ("tidemark consume no-such", []),
    ],
)
@pytest.mark.usefixtures("names")
def test_topics_and_groups_are_completed(tidemark: Tidemark, line: str, completions: list[str]) -> None:
    """Topics of groups are completed only after a percent sign."""
    assert _completed(tidemark, line) == completions


@pytest.mark.usefixtures("names")
def test_contexts_are_completed_and_used(tidemark: Tidemark, nowhere: Tidemark, tmp_path: Path) -> None:
    """The names of topics come from the service of the context."""
    bare = {name: value for name, value in nowhere.environment.items() if not name.startswith("TIDEMARK_")}
    there = Tidemark("", tidemark.query_url, environment={**bare, "XDG_CONFIG_HOME": str(tmp_path)})
    there.json("context", "add", "ctx-near", "--query", tidemark.query_url)
    there.json("context", "add", "ctx-far", "--query", nowhere.query_url)
    for line in ("tidemark consume --context ctx", "tidemark --context ctx", "tidemark context use ctx"):
        assert _completed(there, line) == ["ctx-near", "ctx-far"]
    assert _completed(there, "tidemark consume --context ctx-near completed-b") == ["completed-b"]
    assert _completed(there, "tidemark --context ctx-near consume completed-b") == ["completed-b"]
    assert _completed(there, "tidemark consume completed-b", TIDEMARK_CONTEXT="ctx-near") == ["completed-b"]
    assert _completed(there, "tidemark consume --context ctx-far completed-b") == []


def test_a_silent_service_gives_no_completions_soon(nowhere: Tidemark) -> None:
    """The shell waits for the command: neither a refused connection nor a silent one may hold it for long."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        line = f"tidemark consume --query http://127.0.0.1:{silent.getsockname()[1]} x"
        assert _completed(nowhere, line) == []
        assert time.monotonic() - began < 30  # far less than the client's own timeout of 60 s
    assert _completed(nowhere, "tidemark consume x") == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.usefixtures("names")
def test_bash_completes_with_the_printed_script(tidemark: Tidemark, tmp_path: Path) -> None:
    """The script defines the function that bash calls for a line."""
    command = tmp_path / "tidemark"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    command.chmod(0o755)
    script = """
        eval "$(tidemark completion bash)"
        complete -p tidemark
        COMP_WORDS=(tidemark consume completed-) COMP_CWORD=2
        _tidemark_completion tidemark
        echo "${COMPREPLY[@]}"
    """
    path = os.pathsep.join((str(tmp_path), tidemark.environment["PATH"]))
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**tidemark.environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    registered, completed = done.stdout.splitlines()
    assert registered == "complete -o default -F _tidemark_completion tidemark"
    assert completed == "completed-a completed-b"
