"""Comparison of a store's log and queue files with those of its copy."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Compared(NamedTuple):
    """bytes: that were compared. different: names of the files that differ, or are missing in the copy."""

    bytes: int
    different: list[str]


def compare_files(store: Path, copy: Path, end: int) -> Compared:
    """Compare each file of log and queues below the log's *end*, byte by byte."""
    compared = 0
    different = []
    for folder in ("commitlog", "consumequeue", "batchconsumequeue"):
        for file in sorted((store / folder).rglob("[0-9]*")):
            if not file.is_file():
                continue
            data = file.read_bytes()
            if folder == "commitlog":
                data = data[: max(0, end - int(file.name))]
            if not data.strip(b"\0"):
                continue  # prepared ahead of time
            name = file.relative_to(store)
            if not (copy / name).exists() or (copy / name).read_bytes()[: len(data)] != data:
                different.append(str(name))
            compared += len(data)
    return Compared(compared, different)
