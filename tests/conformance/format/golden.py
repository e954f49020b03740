"""Reads of the golden stores: their logs record by record, and their queues by docs/format.md §2, §5, §13.

The stores were written by Apache RocketMQ 5.3.3; Tidemark's code wrote none of their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tidemark.format.check import Checker, CheckResult
from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.sys_flag import TRANSACTION_MASK, SysFlag

STORES = ("mixed/store", "killed/store-killed", "killed/store-recovered", "expired/store")
COMPLETE = ("mixed/store", "killed/store-recovered")  # nothing expired, every queue built to the log's end
INDEX_SIZES = {"mixed": (500, 2000), "killed": (100, 400), "expired": (100, 400)}  # slots, entries


class WalkedFile(NamedTuple):
    """One file of a log and the walk's result."""

    start: int
    buffer: U8Array
    result: CheckResult


def data_files(folder: Path) -> list[Path]:
    """Return the files of one queue or log, in order."""
    return sorted(path for path in folder.iterdir() if path.is_file())


def walk_log(store: Path) -> Iterator[WalkedFile]:
    """Yield every file of the log, walked separately."""
    for path in data_files(store / "commitlog"):
        buffer = np.frombuffer(path.read_bytes(), np.uint8)
        start = int(path.name)
        yield WalkedFile(start, buffer, Checker().check(buffer, base_offset=start, file_end=buffer.size))


def units_by_queue(store: Path) -> dict[tuple[str, int], RequestArray]:
    """Return the rows of every queue's records in the order of the log, without half and rolled-back messages."""
    rows: dict[tuple[str, int], list[RequestArray]] = {}
    for file in walk_log(store):
        for row in file.result.requests:
            if int(row["sys_flag"]) & TRANSACTION_MASK in (0, SysFlag.TRANSACTION_COMMIT):
                at = int(row["topic_at"])
                topic = file.buffer[at : at + int(row["topic_length"])].tobytes().decode()
                rows.setdefault((topic, int(row["queue_id"])), []).append(row.copy())
    return {queue: np.array(found) for queue, found in rows.items()}


def queues_of(folder: Path) -> Iterator[tuple[tuple[str, int], bytes, int]]:
    """Yield (topic, queue id), the concatenated bytes of its files, and the start of the first file."""
    for queue in sorted(folder.glob("*/*")):
        files = data_files(queue)
        yield (queue.parent.name, int(queue.name)), b"".join(map(Path.read_bytes, files)), int(files[0].name)
