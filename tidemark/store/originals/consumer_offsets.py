"""`config/consumerOffset.json` in RocketMQ's form: a group's next offset in each queue. The query service owns it."""

from __future__ import annotations

from pathlib import Path

from tidemark.errors import CorruptStoreError
from tidemark.store.originals.topics import load_config

SEPARATOR = "@"  # topic@group
OffsetTable = dict[str, dict[int, int]]  # topic@group → queue id → the group's next queue offset


def load_consumer_offsets(path: Path) -> OffsetTable:
    """Return the offsets of the file, its copy or its `.bak`; {} without any. CorruptStoreError: they are invalid.

    An error is necessary: a group that started over because of unreadable offsets would receive everything again.
    """
    content = load_config(path)
    try:
        table = {} if content is None else content.get("offsetTable") or {}
        return {key: {int(queue): int(offset) for queue, offset in queues.items()} for key, queues in table.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptStoreError(f"{path} is not a table of consumer offsets", path=str(path)) from error
