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

    A level that is not there begins at 0. counter: how often the table was saved.
    """

    counter: int
    table: Mapping[int, int]


def load_delay_offsets(path: Path) -> DelayOffsets:
    """The file's offsets, or its `.bak`'s; none without either. CorruptStoreError when they hold something else.

    A scheduler that began anew because its offsets could not be read would deliver everything once more.
    """
    content = load_config(path)
    try:
        content = {} if content is None else content
        table = {int(level): int(offset) for level, offset in (content.get("offsetTable") or {}).items()}
        counter = int((content.get("dataVersion") or {}).get("counter", 0))
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptStoreError(f"{path} is no table of delay offsets", path=str(path)) from error
    return DelayOffsets(counter, table)


def save_delay_offsets(path: Path, offsets: DelayOffsets, storage: Storage) -> None:
    """Durable when this returns; the previous content stays as `.bak`."""
    version = {"counter": offsets.counter, "stateVersion": 0, "timestamp": time.time_ns() // 1_000_000}
    table = {str(level): offset for level, offset in sorted(offsets.table.items())}
    save_config(path, {"dataVersion": version, "offsetTable": table}, storage)
