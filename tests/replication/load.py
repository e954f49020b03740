"""Messages that are sent to a group, and what its logs must have of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidemark.client import Producer, SendStatus
from tidemark.errors import StoreError
from tidemark.format.check import Checker, Crc
from tidemark.index.log_walk import LogPart, LogWalk
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import StorePaths


class Load:
    """Messages that are sent until `stop`, each with a number as its key. acknowledged: keys with their offsets."""

    def __init__(self, producer: Producer, topic: str = "orders") -> None:
        self.acknowledged: dict[str, tuple[int, int]] = {}
        self.open = 0  # messages without an outcome
        self._producer = producer
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            futures = []
            for _ in range(20):
                key = f"{id(self)}-{number}"
                body = key.encode() + bytes(300)
                futures.append((key, self._producer.send_async(self._topic, body, keys=[key])))
                number += 1
            for key, future in futures:
                try:
                    result = future.result()
                except StoreError:
                    self.open += 1
                    continue
                if result.status is SendStatus.PUT_OK:
                    self.acknowledged[key] = result.queue_id, result.queue_offset

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


def stored_messages(folder: Path) -> Iterator[tuple[str, tuple[str, int, int]]]:
    """Yield key, topic, queue id and queue offset of each message with a key in the log of a member."""
    paths = StorePaths(folder)
    size = next((paths.commit_log).iterdir()).stat().st_size
    log = MappedFileQueue(paths.commit_log, size)
    for part in LogWalk(log, log.min_offset, Checker(crc=Crc.STOPS)).parts(limit=log.capacity_end, floor=0):

        def text(row: Any, name: str, part: LogPart = part) -> str:
            at = int(row[f"{name}_at"])
            return bytes(part.buffer[at : at + int(row[f"{name}_length"])]).decode()

        for row in part.requests:
            if key := text(row, "keys"):
                yield key, (text(row, "topic"), int(row["queue_id"]), int(row["base_offset"]))
    log.close()


def stored_keys(folder: Path) -> dict[str, tuple[int, int]]:
    """Return queue id and queue offset of each message in a log, by its key. Fails for a key that is there twice."""
    found: dict[str, tuple[int, int]] = {}
    for key, (_, queue_id, offset) in stored_messages(folder):
        assert key not in found, f"{key} is stored twice"
        found[key] = queue_id, offset
    return found


def require_stored(folder: Path, acknowledged: dict[str, tuple[int, int]]) -> None:
    stored = stored_keys(folder)
    missing = {key: place for key, place in acknowledged.items() if stored.get(key) != place}
    assert not missing, f"{len(missing)} of {len(acknowledged)} acknowledged messages are missing or moved"
