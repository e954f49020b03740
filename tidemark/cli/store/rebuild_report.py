"""What a rebuild tells of itself: how far it is while it runs, and what it did, out of the pipeline's log lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

_EVENT = "drain_finished"


def report(lines: Sequence[str]) -> dict[str, Any]:
    """What the pipeline's log *lines* say about the drain: bytes of log, times in seconds; {} without a word of it."""
    import orjson

    for line in reversed(lines):
        if _EVENT in line:
            event = orjson.loads(line)
            return {name: value for name, value in event.items() if name not in ("event", "level", "timestamp")}
    return {}


def scanned_bytes(folder: Path) -> int:
    """How much of the log the scan in *folder* has seen; 0 where there is none."""
    from tidemark.index.scan.range_files import read_progress

    return read_progress(folder)
