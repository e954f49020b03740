"""What a rebuild did, out of the pipeline's log lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_EVENT = "drain_finished"


def report(lines: Sequence[str]) -> dict[str, Any]:
    """What the pipeline's log *lines* say about the drain: bytes of log, times in seconds; bytes_per_s without start_s.

    ValueError where they say nothing of it.
    """
    import orjson

    for line in reversed(lines):
        if _EVENT in line:
            event = orjson.loads(line)
            return {name: value for name, value in event.items() if name not in ("event", "level", "timestamp")}
    raise ValueError(f"no {_EVENT} in the pipeline's log")
