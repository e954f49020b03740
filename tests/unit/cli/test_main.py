"""The command as a whole: the cost of `--help`, and the options that every verb has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tests.fixed_ports import fixed_port
from tidemark.cli.main import app
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.version import program_version

_HEAVY = {"grpc", "google", "numpy", "numba", "pyarrow", "pandas", "pydantic", "pydantic_settings", "pyspark", "rich"}
_HEAVY_FOR_CLIENTS = {"numpy", "numba", "pyarrow", "pandas", "pydantic_settings", "pyspark", "rich"}
_MODULES_OF_HELP = """
import sys
from tidemark.cli.main import app
try:
    app(["--help"], prog_name="tidemark")
finally:
    sys.stderr.write(" ".join(sys.modules))
"""
_MODULES_OF_VERB = """
import runpy, sys
sys.argv[0] = "tidemark"
try:
    runpy.run_module("tidemark.cli", run_name="__main__")
finally:
    sys.stderr.write(" ".join(sys.modules))
"""
_VERB_PACKAGES = ("tidemark.cli.verbs.", "tidemark.cli.store.", "tidemark.cli.archive.")
_PRINT_NO_DATA = {"follow", "serve", "completion", "help", "group promote", "group hand-over"}


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


def test_version_imports_no_verb() -> None:
    """It needs neither the verbs' modules nor anything heavy."""
    done = subprocess.run(
        [sys.executable, "-c", _MODULES_OF_VERB, "--version"], capture_output=True, text=True, check=False
    )
    imported = done.stderr.split()
    assert done.stdout == f"{program_version()}\n"
    assert "tidemark.cli.main" in imported
    assert not {name.partition(".")[0] for name in imported} & _HEAVY
    assert [name for name in imported if name.startswith(_VERB_PACKAGES)] == ["tidemark.cli.verbs.completion"]


@pytest.mark.parametrize("words", ["topic list", "consume orders", "produce orders body", "get key orders k"])
def test_verbs_of_clients_import_neither_tables_nor_settings(words: str) -> None:
    """They fail here for want of a service, with their modules loaded."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    address = ("--writer", f"127.0.0.1:{fixed_port()}") if "produce" in words else ("--query", "http://127.0.0.1:1")
    done = subprocess.run(
        [sys.executable, "-c", _MODULES_OF_VERB, *words.split(), *address],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    imported = {name.partition(".")[0] for name in done.stderr.splitlines()[-1].split()}
    assert done.returncode == ExitStatus.UNAVAILABLE, done.stderr
    assert "tidemark" in imported
    assert not imported & _HEAVY_FOR_CLIENTS


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


@pytest.mark.parametrize("words", [["--version"], ["version"]])
def test_version_is_printed(words: list[str]) -> None:
    """The option and the verb print the same."""
    assert CliRunner().invoke(app, words).stdout == f"{program_version()}\n"


@pytest.mark.parametrize("words", [[], ["topic"], ["topic", "create"]], ids=" ".join)
def test_help_is_printed_by_h_help_and_the_verb_help(words: list[str]) -> None:
    """All three print the same text."""
    shown = [
        CliRunner().invoke(app, arguments, prog_name="tidemark")
        for arguments in ([*words, "--help"], [*words, "-h"], ["help", *words])
    ]
    assert [one.exit_code for one in shown] == [0, 0, 0]
    assert shown[0].stdout.startswith(f"Usage: {' '.join(['tidemark', *words])} ")
    assert {one.stdout for one in shown} == {shown[0].stdout}


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["topik"], "Did you mean 'topic'?"),
        (["topic", "sho"], "Did you mean 'show'?"),
        (["status", "now"], "`tidemark status` has no verbs below it, such as 'now'"),
    ],
)
def test_help_of_an_unknown_verb_is_a_usage_error(words: list[str], reported: str) -> None:
    """The error suggests the nearest verb."""
    shown = CliRunner().invoke(app, ["help", *words], prog_name="tidemark")
    assert shown.exit_code == ExitStatus.USAGE
    assert reported in shown.stderr


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
