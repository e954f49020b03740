"""Services of one store for a benchmark, with RocketMQ's file sizes, and an end that must be clean."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tidemark.local.local_stack import START_ORDER, LocalStack

FILE_SIZES = {  # the services' own defaults, and the peers': `tidemark serve` would choose a laptop's
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
    """*services* (all three without a name) on the store at *data*.

    raises ServiceDiedError when one ended by itself meanwhile, RuntimeError when one did not stop with exit status 0
    """
    stack = LocalStack(data, environment=environment(flush_mode, settings), services=services or START_ORDER)
    stack.start()
    try:
        yield stack
        stack.check()
    except BaseException:
        stack.stop()
        raise
    if failed := {name: status for name, status in stack.stop().items() if status}:
        raise RuntimeError(f"exit statuses {failed}; see {stack.logs}")


def environment(flush_mode: str, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """TIDEMARK_ settings of a benchmark's services."""
    return {**FILE_SIZES, "TIDEMARK_FLUSH_MODE": flush_mode, **(settings or {})}
