"""How a verb ends: the table of exit statuses, and what is said instead of a traceback. Decided here and nowhere else.

Knows no service. Messages go to standard error, so that standard output holds data alone.
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
from tidemark.errors import StoreError
from tidemark.status import status_of


class ExitStatus(enum.IntEnum):
    """Exit status of every verb."""

    OK = 0
    FAILED = 1
    USAGE = 2  # click's own number
    NOT_FOUND = 3
    REJECTED = 4
    UNAVAILABLE = 5
    INTERRUPTED = 130  # 128 + SIGINT, as a shell has it


MEANINGS = {
    ExitStatus.OK: "done; for a verb that looks for faults: none was found",
    ExitStatus.FAILED: "something is wrong (`status`, `doctor`, `store check`, …), or bytes of the store are damaged",
    ExitStatus.USAGE: "the command line is wrong",
    ExitStatus.NOT_FOUND: "no such topic, queue, group, message, offset or file",
    ExitStatus.REJECTED: "the input was refused: a malformed line, a message too large, a topic of another shape, …",
    ExitStatus.UNAVAILABLE: "not now: a service does not answer, a store is locked, a disk is full, …",
    ExitStatus.INTERRUPTED: "Ctrl-C",
}

_OF_CLIENT = frozenset({"google", "grpc", "grpc_status", "orjson", "pydantic", "pydantic_settings", "rich"})
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
_EXTRAS = {"client": _OF_CLIENT, "client,table": _OF_TABLE, "all": _OF_SERVICES}  # top-level modules that they bring
_BRANCHES: tuple[tuple[type[Exception], ExitStatus], ...] = (  # the first one that fits
    (errors.TopicNotFoundError, ExitStatus.NOT_FOUND),
    (errors.QueueIllegalError, ExitStatus.NOT_FOUND),
    (errors.RejectedError, ExitStatus.REJECTED),
    (errors.OffsetError, ExitStatus.NOT_FOUND),
    (errors.UnavailableError, ExitStatus.UNAVAILABLE),
    (errors.StoreError, ExitStatus.FAILED),
    (FileNotFoundError, ExitStatus.NOT_FOUND),
    (OSError, ExitStatus.UNAVAILABLE),
)
_START_WRITER = "is the writer running? start one with `tidemark serve`, or name it with --writer HOST:PORT"
_START_QUERY = "is the query service running? start one with `tidemark serve`, or name it with --query URL"
_TLS = (
    "TIDEMARK_TLS_CA names the CAs to trust, TIDEMARK_TLS_CERT and TIDEMARK_TLS_KEY the certificate to show; "
    "tls://HOST:PORT and https:// are spoken to with TLS"
)
_NEXT_STEPS: tuple[tuple[type[StoreError], str], ...] = (
    (errors.WriterUnreachableError, _START_WRITER),
    (errors.DeadlineExceededError, _START_WRITER),  # a client waits for a writer that is just being started
    (errors.QueryUnreachableError, _START_QUERY),
    (errors.TlsFailedError, _TLS),
    (errors.UnauthenticatedError, "TIDEMARK_TOKEN_FILE names the file of the token to show, or TIDEMARK_TOKEN is it"),
    (errors.TokenFileError, "TIDEMARK_TOKEN_FILE names it; `tidemark access token` makes a token"),
    (errors.ForbiddenError, "who runs the service can say so in its access file: docs/security.md"),
    (errors.TopicNotFoundError, "`tidemark topic list` shows the topics that there are"),
    (errors.QueueIllegalError, "`tidemark topic show TOPIC` shows its queues"),
    (errors.OffsetTooSmallError, "retention has deleted it: `--from earliest` begins with what is left"),
    (errors.OffsetOutOfRangeError, "`tidemark topic show TOPIC` shows how far each queue goes"),
    (errors.MessageNotYetVisibleError, "wait for it with --wait-ms, or see how far all is: `tidemark status`"),
    (errors.GroupActiveError, "stop its consumers, then try again: `tidemark group show GROUP` shows its members"),
    (errors.StoreTooNewError, "install the version of Tidemark that has written it"),
)


class FailuresTold(TyperGroup):
    """The root of all verbs: whatever one of them raises ends the command as the table says."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        _escape_what_the_locale_lacks()
        with failures_told(ctx):
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()  # here, so that a broken pipe is found here


def _escape_what_the_locale_lacks() -> None:
    """Print characters that the encoding of a terminal lacks as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def failures_told(ctx: typer.Context) -> Iterator[None]:
    """Tell a StoreError, an OSError or Ctrl-C, and end with its exit status.

    A broken pipe is no failure: who reads has had enough (`tidemark consume … | head`). The command ends quietly, 0.
    """
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered goes there at exit
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
        _tell(error, as_json=is_json(ctx))
        raise typer.Exit(exit_status_of(error)) from error


def say(text: str) -> None:
    """One message for people, on standard error."""
    typer.echo(text, err=True)


def exit_status_of(error: Exception) -> ExitStatus:
    """Of a failure that a verb ended with."""
    return next((status for branch, status in _BRANCHES if isinstance(error, branch)), ExitStatus.FAILED)


def reason_of(error: Exception) -> str:
    """The stable reason of a failure; of one without a leaf its branch's name."""
    reason = status_of(error).reason
    if reason == "INTERNAL" and isinstance(error, errors.UnavailableError):
        return "UNAVAILABLE"
    return "OS_ERROR" if isinstance(error, OSError) else reason


def next_steps_of(error: Exception) -> list[str]:
    """What to do about it: the table's, and what its raiser has noted."""
    steps = [step for leaf, step in _NEXT_STEPS if isinstance(error, leaf)]
    return [*steps, *_notes(error)]


def _tell(error: StoreError | OSError, *, as_json: bool) -> None:
    message = error.message if isinstance(error, StoreError) else str(error)
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
