"""Files of JSON objects, one on each line, that only grow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

from tidemark.store.storage import Storage


def append_line(path: Path, value: dict[str, Any], storage: Storage) -> None:
    """Append *value* durably. A last line that a crash cut off is ended before."""
    line = orjson.dumps(value) + b"\n"
    descriptor = storage.open(path) if path.exists() else storage.create(path, 0)
    try:
        end = os.fstat(descriptor).st_size
        if end and os.pread(descriptor, 1, end - 1) != b"\n":
            line = b"\n" + line
        storage.pwrite(descriptor, line, end)
        storage.fdatasync(descriptor)
    finally:
        os.close(descriptor)
