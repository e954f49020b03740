"""`config/delayOffset.json` in RocketMQ's form (docs/format.md §9): the delivered offset of each delay level."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tidemark.errors import CorruptStoreError
from tidemark.store.originals.topics import load_config, save_config
from tidemark.store.storage import Storage


class DelayOffsets(NamedTuple):
    """Level (1 is the first) → next queue offset to deliver in SCHEDULE_TOPIC_XXXX, queue level - 1.

    A missing level starts at 0. counter: number of times that the table was saved.
    """

    counter: int
    table: Mapping[int, int]


def load_delay_offsets(path: Path) -> DelayOffsets:
    """Return the offsets of the file, its copy or its `.bak`; none without any. CorruptStoreError: they are invalid.

    An error is necessary: a scheduler that started over because of unreadable offsets would deliver everything again.
    """
    content = load_config(path)
    try:
        content = {} if content is None else content
        table = {int(level): int(offset) for level, offset in (content.get("offsetTable") or {}).items()}
        counter = int((content.get("dataVersion") or {}).get("counter", 0))
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptStoreError(f"{path} is not a table of delay offsets", path=str(path)) from error
    return DelayOffsets(counter, table)


def save_delay_offsets(path: Path, offsets: DelayOffsets, storage: Storage) -> None:
    """Write the offsets, durably. The previous content stays as `.bak`."""
    version = {"counter": offsets.counter, "stateVersion": 0, "timestamp": time.time_ns() // 1_000_000}
    table = {str(level): offset for level, offset in sorted(offsets.table.items())}
    save_config(path, {"dataVersion": version, "offsetTable": table}, storage)
