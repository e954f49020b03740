"""Exit statuses of failures, and their messages without tracebacks."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner

from tidemark import errors
from tidemark.cli.terminal.exit_status import MEANINGS, ExitStatus, FailuresTold, exit_status_of, reason_of
from tidemark.cli.terminal.output import Output, OutputOption
from tidemark.status import STATUS


def _ends(error: BaseException, *arguments: str) -> tuple[int, str, str]:
    """Return the exit status, standard output and standard error of a verb that raises *error*."""
    app = typer.Typer(cls=FailuresTold)

    @app.callback()
    def _root() -> None: ...

    @app.command()
    def verb(output: OutputOption = Output.TABLE) -> None:
        raise error

    result = CliRunner().invoke(app, ["verb", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def test_every_error_class_has_a_failure_exit_status() -> None:
    """docs/cli.md documents every status."""
    wanted = {ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.REJECTED, ExitStatus.UNAVAILABLE}
    assert {exit_status_of(leaf("x")) for leaf in STATUS} == wanted
    assert set(MEANINGS) == set(ExitStatus)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.TopicNotFoundError, ExitStatus.NOT_FOUND),
        (errors.QueueIllegalError, ExitStatus.NOT_FOUND),
        (errors.MessageNotFoundError, ExitStatus.NOT_FOUND),
        (errors.OffsetTooSmallError, ExitStatus.NOT_FOUND),
        (errors.TopicExistsError, ExitStatus.REJECTED),
        (errors.MessageSizeExceededError, ExitStatus.REJECTED),
        (errors.CorruptStoreError, ExitStatus.FAILED),
        (errors.WriterUnreachableError, ExitStatus.UNAVAILABLE),
        (errors.StoreLockedError, ExitStatus.UNAVAILABLE),
        (errors.UnavailableError, ExitStatus.UNAVAILABLE),
        (errors.StoreError, ExitStatus.FAILED),
        (FileNotFoundError, ExitStatus.NOT_FOUND),
        (PermissionError, ExitStatus.UNAVAILABLE),
    ],
)
def test_exit_statuses_are_stable(error: Callable[[str], Exception], status: ExitStatus) -> None:
    """Scripts rely on them."""
    assert exit_status_of(error("x")) == status


def test_an_error_is_printed_with_its_facts_and_the_next_step() -> None:
    """The message goes to standard error."""
    status, output, told = _ends(errors.WriterUnreachableError("nobody there", path="x"))
    assert (status, output) == (ExitStatus.UNAVAILABLE, "")
    assert told.startswith("error: nobody there\n  path: x\n")
    assert "tidemark serve" in told


def test_an_error_is_one_json_line_with_json_output() -> None:
    """The line has the stable reason; standard output stays empty."""
    error = errors.TopicNotFoundError("no topic x", topic="x")
    error.add_note("look again")
    status, output, told = _ends(error, "--output", "json")
    document = json.loads(told)
    assert (status, output) == (ExitStatus.NOT_FOUND, "")
    assert (document["reason"], document["facts"], document["error"]) == (
        "TOPIC_NOT_FOUND",
        {"topic": "x"},
        "no topic x",
    )
    assert document["next_steps"][-1] == "look again"


def test_ctrl_c_exits_with_130_without_a_traceback() -> None:
    """The summary that the verb has prepared is printed."""
    interrupt = KeyboardInterrupt()
    interrupt.add_note("7 messages are acknowledged")
    assert _ends(interrupt) == (ExitStatus.INTERRUPTED, "", "interrupted\n7 messages are acknowledged\n")


def test_other_exceptions_have_the_reason_of_their_branch() -> None:
    """The reason is that of its branch."""
    assert reason_of(errors.UnavailableError("x")) == "UNAVAILABLE"
    assert reason_of(OSError("x")) == "OS_ERROR"
    assert reason_of(errors.DiskFullError("x")) == "DISK_FULL"


@pytest.mark.parametrize(
    ("module", "extras"),
    [("grpc", "client"), ("pyarrow.csv", "client,table"), ("numba", "client,table"), ("pyspark.sql", "all")],
)
def test_a_missing_package_is_reported_with_its_extra(module: str, extras: str) -> None:
    """The error names the smallest sufficient extras."""
    status, _, told = _ends(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert status == ExitStatus.UNAVAILABLE
    assert told == f'error: {module} is not installed\npip install "tidemark[{extras}]"\n'


def test_a_missing_module_of_no_extra_is_raised_unchanged() -> None:
    """It is raised unchanged."""
    with pytest.raises(AssertionError):
        _ends(ModuleNotFoundError("No module named 'grp'", name="grp"))
