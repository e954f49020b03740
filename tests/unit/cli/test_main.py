"""The command as a whole: the cost of `--help`, and the options that every verb has."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.version import program_version

_HEAVY = {"grpc", "google", "numpy", "numba", "pyarrow", "pandas", "pydantic", "pydantic_settings", "pyspark", "rich"}
_MODULES_OF_HELP = """
import sys
from tidemark.cli.main import app
try:
    app(["--help"], prog_name="tidemark")
finally:
    sys.stderr.write(" ".join(sys.modules))
"""
_PRINT_NO_DATA = {"serve", "completion"}


def _verbs(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the words and the command of every verb below *command*."""
    children = getattr(command, "commands", None)
    if children is None:
        yield words, command
        return
    for name, child in children.items():
        yield from _verbs(child, *words, name)


VERBS = dict(_verbs(get_command(app)))


def test_help_imports_nothing_heavy() -> None:
    """It starts fast without gRPC, NumPy, settings classes and the screen library."""
    done = subprocess.run([sys.executable, "-c", _MODULES_OF_HELP], capture_output=True, text=True, check=False)
    imported = {name.partition(".")[0] for name in done.stderr.split()}
    assert "Commands:" in done.stdout
    assert "typer" in imported
    assert not imported & _HEAVY


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_verb_has_help_with_an_example_of_itself(words: tuple[str, ...]) -> None:
    """`tidemark VERB --help` ends with the example."""
    shown = CliRunner().invoke(app, [*words, "--help"])
    assert shown.exit_code == 0
    assert f"tidemark {' '.join(words)}" in shown.stdout.partition("Example: ")[2]
    assert VERBS[words].help.splitlines()[0].endswith(".")


def test_every_verb_that_prints_data_prints_json() -> None:
    """The option is --output json."""
    without = {
        " ".join(words)
        for words, verb in VERBS.items()
        if not any("--output" in parameter.opts for parameter in verb.params)
    }
    assert without == _PRINT_NO_DATA


def test_version_is_printed() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"{program_version()}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(shell: str) -> None:
    """The script asks this command through its variable."""
    shown = CliRunner().invoke(app, ["completion", shell])
    assert shown.exit_code == 0
    assert "_TIDEMARK_COMPLETE" in shown.stdout


def test_shell_completion_returns_the_verbs() -> None:
    """The request is that of the script for bash."""
    done = subprocess.run(
        [sys.executable, "-m", "tidemark.cli"],
        env={"_TIDEMARK_COMPLETE": "complete_bash", "COMP_WORDS": "tidemark pro", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["produce"], done.stderr
