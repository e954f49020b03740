"""Runs the services of one store for a benchmark, with RocketMQ's file sizes, and requires a clean stop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tidemark.local.local_stack import START_ORDER, LocalStack

FILE_SIZES = {  # the defaults of the services and of RocketMQ; `tidemark serve` would choose smaller ones
    "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(1 << 30),
    "TIDEMARK_INDEX_SLOTS": str(5_000_000),
    "TIDEMARK_INDEX_ENTRIES": str(20_000_000),
}


@contextlib.contextmanager
def running(
    data: Path,
    *services: str,
    flush_mode: str = "sync",
    settings: Mapping[str, str] | None = None,
) -> Iterator[LocalStack]:
    """Run *services* (default: all three) on the store at *data*; Spark has taken over from the understudy.

    Raises ServiceDiedError if a service ended by itself, RuntimeError if one did not stop with exit status 0.
    """
    stack = LocalStack(data, environment=environment(flush_mode, settings), services=services or START_ORDER)
    stack.start()
    try:
        stack.wait_for_spark()
        yield stack
        stack.check()
    except BaseException:
        stack.stop()
        raise
    if failed := {name: status for name, status in stack.stop().items() if status}:
        raise RuntimeError(f"services stopped with exit statuses {failed}: see {stack.logs}")


def environment(flush_mode: str, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the TIDEMARK_ settings of a benchmark's services."""
    return {**FILE_SIZES, "TIDEMARK_FLUSH_MODE": flush_mode, **(settings or {})}
