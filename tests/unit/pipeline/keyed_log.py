"""A log of one queue whose records have one key each, and the entries of its key index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.builders import Placed, properties, write_log
from tests.pipeline_runs import index_contents
from tidemark.format.index_file import decode_header, entry_at
from tidemark.format.index_layout import ENTRY, HEADER_SIZE

LOG_FILE = 8192
SLOTS, ENTRIES = 16, 40  # 39 keys a file
SETTINGS: dict[str, Any] = {
    "commit_log_segment_size_bytes": LOG_FILE,
    "index_slots": SLOTS,
    "index_entries": ENTRIES,
    "consume_queue_file_size_bytes": 400,
    "batch_consume_queue_file_size_bytes": 460,
    "chunk_size_bytes": 4096,
}
FIRST_MS, STEP_MS = 1_700_000_000_000, 1_700  # index entries keep whole seconds


def write_keyed_log(root: Path, count: int) -> list[Placed]:
    """Write the first *count* records of a log; the same bytes each time, with other store times in each second."""
    return write_log(
        root / "commitlog",
        LOG_FILE,
        (
            {
                "queue_offset": number,
                "store_timestamp": FIRST_MS + STEP_MS * number,
                "properties": properties({"KEYS": f"key{number}"}),
            }
            for number in range(count)
        ),
    )


def indexed_offsets(root: Path) -> list[int]:
    """Return the physical offsets of all counted index entries, oldest first."""
    offsets: list[int] = []
    for content in index_contents(root):
        count = decode_header(content[:HEADER_SIZE]).index_count
        entries = np.frombuffer(content, ENTRY, offset=entry_at(SLOTS, 0))
        offsets += entries["physical_offset"][1:count].tolist()
    return offsets
