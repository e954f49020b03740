"""`config/consumerOffset.json` in RocketMQ's form: where a group goes on in a queue. The query service owns it."""

from __future__ import annotations

from pathlib import Path

from tidemark.errors import CorruptStoreError
from tidemark.store.originals.topics import load_config

SEPARATOR = "@"  # topic@group
OffsetTable = dict[str, dict[int, int]]  # topic@group → queue id → next queue offset the group wants


def load_consumer_offsets(path: Path) -> OffsetTable:
    """The file's offsets, or its `.bak`'s; none without either. CorruptStoreError when they hold something else.

    A group that began anew because its offsets could not be read would take everything once more.
    """
    content = load_config(path)
    try:
        table = {} if content is None else content.get("offsetTable") or {}
        return {key: {int(queue): int(offset) for queue, offset in queues.items()} for key, queues in table.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptStoreError(f"{path} is no table of consumer offsets", path=str(path)) from error
