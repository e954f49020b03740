"""`tidemark/writer/queue_offsets`: the next offset of every queue at a position of the log (docs/format.md §9).

The writer owns it and adds the records after the position.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tidemark.errors import CorruptStoreError
from tidemark.store.originals.checked_copy import FileRules, read_checked, write_checked
from tidemark.store.storage import Storage

_VERSION = 1


class NextOffsets(NamedTuple):
    """The table at the time when the log ended at *position*. store_timestamp: of the last record below it."""

    position: int
    store_timestamp: int
    table: Mapping[tuple[str, int], int]  # (topic, queue id) → next queue offset
    record_starts: tuple[int, ...] = ()  # some physical offsets below the position at which a record begins


def save_next_offsets(path: Path, next_offsets: NextOffsets, storage: Storage) -> None:
    """Write the table and its checked copy, durably. The previous table stays as `.bak`."""
    write_checked(path, encode_next_offsets(next_offsets), storage)


def encode_next_offsets(next_offsets: NextOffsets) -> bytes:
    """Encode the file's content."""
    table: dict[str, dict[str, int]] = {}
    for (topic, queue_id), offset in next_offsets.table.items():
        table.setdefault(topic, {})[str(queue_id)] = offset
    content = {
        "version": _VERSION,
        "position": next_offsets.position,
        "storeTimestamp": next_offsets.store_timestamp,
        "offsetTable": table,
        "recordStarts": next_offsets.record_starts,
    }
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)


def load_next_offsets(path: Path) -> NextOffsets | None:
    """Return the newest whole table; None if none can be read, in which case recovery scans the log."""
    with contextlib.suppress(CorruptStoreError):
        choice = read_checked(path, NEXT_OFFSETS_FORM)
        if choice.has_copy and choice.data is not None:
            return decode_next_offsets(orjson.loads(choice.data))
    for candidate in (path, path.with_name(path.name + ".bak")):
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return decode_next_offsets(orjson.loads(candidate.read_bytes()))
    return None


def decode_next_offsets(content: dict[str, Any]) -> NextOffsets:
    """Decode the file's JSON. ValueError, KeyError, TypeError or AttributeError: it is invalid."""
    if content["version"] != _VERSION:
        raise ValueError(f"version is {content['version']}, only {_VERSION} is supported")
    table = {
        (topic, int(queue_id)): int(offset)
        for topic, queues in content["offsetTable"].items()
        for queue_id, offset in queues.items()
    }
    record_starts = tuple(int(start) for start in content.get("recordStarts", ()))
    return NextOffsets(int(content["position"]), int(content["storeTimestamp"]), table, record_starts)


NEXT_OFFSETS_FORM = FileRules(lambda data: decode_next_offsets(orjson.loads(data)), lambda table: (table.position,))
