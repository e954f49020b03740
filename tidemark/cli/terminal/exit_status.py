"""Exit statuses of all verbs, and the error messages that replace tracebacks. No other module decides these.

It depends on no service. Messages go to standard error, so that standard output has only data.
"""

from __future__ import annotations

import contextlib
import enum
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from tidemark import errors
from tidemark.cli.terminal.output import is_json, print_error_json
from tidemark.cli.terminal.usage_errors import VALUE_ERROR, plain_usage_errors
from tidemark.errors import StoreError
from tidemark.status import status_of


class ExitStatus(enum.IntEnum):
    """Exit status of every verb."""

    OK = 0
    FAILED = 1
    USAGE = 2  # click's own value
    NOT_FOUND = 3
    REJECTED = 4
    UNAVAILABLE = 5
    INTERRUPTED = 130  # 128 + SIGINT, as in a shell
    TERMINATED = 143  # 128 + SIGTERM


MEANINGS = {
    ExitStatus.OK: "done; for a verb that checks: no fault was found",
    ExitStatus.FAILED: "a fault was found (`status`, `doctor`, `store check`, …), or bytes of the store are damaged",
    ExitStatus.USAGE: "the command line is wrong",
    ExitStatus.NOT_FOUND: "no such topic, queue, group, message, offset or file",
    ExitStatus.REJECTED: "the input was refused: a malformed line, too large a message, a topic of another shape, …",
    ExitStatus.UNAVAILABLE: "try again later: a service does not answer, a store is locked, a disk is full, …",
    ExitStatus.INTERRUPTED: "Ctrl-C",
    ExitStatus.TERMINATED: "SIGTERM",
}

_OF_CLIENT = frozenset(
    {"google", "grpc", "grpc_status", "httptools", "orjson", "pydantic", "pydantic_settings", "rich"}
)
_OF_TABLE = frozenset({"isal", "numba", "numpy", "pyarrow"})
_OF_SERVICES = frozenset(
    {
        "cryptography",
        "fastapi",
        "grpc_health",
        "grpc_reflection",
        "jwt",
        "pandas",
        "prometheus_client",
        "pyspark",
        "structlog",
        "throttled",
        "uvicorn",
    }
)
_EXTRAS = {"client": _OF_CLIENT, "client,table": _OF_TABLE, "all": _OF_SERVICES}  # top-level modules by extra
_BRANCHES: tuple[tuple[type[Exception], ExitStatus], ...] = (  # the first match applies
    (errors.TopicNotFoundError, ExitStatus.NOT_FOUND),
    (errors.QueueIllegalError, ExitStatus.NOT_FOUND),
    (errors.RejectedError, ExitStatus.REJECTED),
    (errors.OffsetError, ExitStatus.NOT_FOUND),
    (errors.UnavailableError, ExitStatus.UNAVAILABLE),
    (errors.StoreError, ExitStatus.FAILED),
    (FileNotFoundError, ExitStatus.NOT_FOUND),
    (OSError, ExitStatus.UNAVAILABLE),
)
_START_WRITER = "is the writer running? start one with `tidemark serve`, or give its address with --writer HOST:PORT"
_START_QUERY = "is the query service running? start one with `tidemark serve`, or give its URL with --query URL"
_TLS = (
    "set TIDEMARK_TLS_CA to the trusted CAs, TIDEMARK_TLS_CERT and TIDEMARK_TLS_KEY to the client's certificate; use "
    "tls://HOST:PORT and https:// for services with TLS"
)
_NEXT_STEPS: tuple[tuple[type[StoreError], str], ...] = (
    (errors.WriterUnreachableError, _START_WRITER),
    (errors.DeadlineExceededError, _START_WRITER),  # a client waits for a writer that may be starting
    (errors.QueryUnreachableError, _START_QUERY),
    (errors.TlsFailedError, _TLS),
    (errors.UnauthenticatedError, "set TIDEMARK_TOKEN_FILE to the file of your token, or TIDEMARK_TOKEN to the token"),
    (
        errors.TokenFileError,
        "TIDEMARK_TOKEN_FILE or a context names this file; `tidemark access token` makes a token",
    ),
    (errors.ForbiddenError, "the operator of the service can grant the right in its access file: docs/security.md"),
    (errors.TopicNotFoundError, "`tidemark topic list` shows the existing topics"),
    (errors.QueueIllegalError, "`tidemark topic show TOPIC` shows its queues"),
    (errors.OffsetTooSmallError, "retention has deleted it: use `--from earliest` to start at the first message left"),
    (errors.OffsetOutOfRangeError, "`tidemark topic show TOPIC` shows the end of each queue"),
    (errors.MessageNotYetVisibleError, "wait for it with --wait-ms, or see the pipeline's lag with `tidemark status`"),
    (errors.GroupActiveError, "stop its consumers, then try again: `tidemark group show GROUP` shows its members"),
    (errors.StoreTooNewError, "install the version of Tidemark that wrote it"),
)


class FailuresTold(TyperGroup):
    """The root command: it turns exceptions of verbs into messages and exit statuses."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        _escape_what_the_locale_lacks()
        with reported_failures(ctx), plain_usage_errors():
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()  # so that a broken pipe is detected inside this block


def _escape_what_the_locale_lacks() -> None:
    """Escape characters that the terminal's encoding lacks, so that printing does not fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def reported_failures(ctx: typer.Context) -> Iterator[None]:
    """Report a StoreError, an OSError or Ctrl-C, and end with its exit status.

    A broken pipe is not a failure: the reader has enough data (`tidemark consume … | head`). The exit status is then 0.
    """
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # buffered output is discarded at exit
        raise typer.Exit(ExitStatus.OK) from None
    except KeyboardInterrupt as interrupt:
        say("interrupted")
        for note in _notes(interrupt):
            say(note)
        raise typer.Exit(ExitStatus.INTERRUPTED) from None
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        extras = next((extras for extras, modules in _EXTRAS.items() if module in modules), None)
        if extras is None:
            raise
        say(f"error: {error.name} is not installed")
        say(f'pip install "tidemark[{extras}]"')
        raise typer.Exit(ExitStatus.UNAVAILABLE) from None
    except (StoreError, OSError) as error:
        _report(error, as_json=is_json(ctx))
        raise typer.Exit(exit_status_of(error)) from error


def say(text: str) -> None:
    """Print a message on standard error."""
    typer.echo(text, err=True)


def exit_status_of(error: Exception) -> ExitStatus:
    """Return the exit status for a verb's failure."""
    return next((status for branch, status in _BRANCHES if isinstance(error, branch)), ExitStatus.FAILED)


def reason_of(error: Exception) -> str:
    """Return the stable reason of a failure; for an exception without its own reason, that of its base class."""
    reason = status_of(error).reason
    if reason == "INTERNAL" and isinstance(error, errors.UnavailableError):
        return "UNAVAILABLE"
    return "OS_ERROR" if isinstance(error, OSError) else reason


def next_steps_of(error: Exception) -> list[str]:
    """Return the remedies: those of the table, and the notes of the exception."""
    steps = [step for leaf, step in _NEXT_STEPS if isinstance(error, leaf)]
    return [*steps, *_notes(error)]


def _report(error: StoreError | OSError, *, as_json: bool) -> None:
    message = error.message.replace(VALUE_ERROR, "") if isinstance(error, StoreError) else str(error)
    facts = error.facts if isinstance(error, StoreError) else {}
    if as_json:
        print_error_json(message, reason_of(error), facts, next_steps_of(error))
        return
    say(f"error: {message}")
    for name, fact in facts.items():
        say(f"  {name}: {fact}")
    for step in next_steps_of(error):
        say(step)


def _notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])
