"""The outcome of a rebuild, from the pipeline's log lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_EVENT = "drain_finished"


def report(lines: Sequence[str]) -> dict[str, Any]:
    """Return the facts of the drain in the pipeline's log *lines*: bytes of log, and times in seconds.

    bytes_per_s does not include start_s. Raises ValueError if the lines do not report a drain.
    """
    import orjson

    for line in reversed(lines):
        if _EVENT in line:
            event = orjson.loads(line)
            return {name: value for name, value in event.items() if name not in ("event", "level", "timestamp")}
    raise ValueError(f"the pipeline's log has no event {_EVENT}")
