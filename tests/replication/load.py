"""Messages that are sent to a group, and what its logs must have of them."""

from __future__ import annotations

import threading
from pathlib import Path

from tidemark.client import Producer, SendStatus
from tidemark.errors import StoreError
from tidemark.format.check import Checker, Crc
from tidemark.index.log_walk import LogWalk
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


def stored_keys(folder: Path) -> dict[str, tuple[int, int]]:
    """Return queue id and queue offset of each message in a log, by its key. Fails for a key that is there twice."""
    paths = StorePaths(folder)
    size = next((paths.commit_log).iterdir()).stat().st_size
    log = MappedFileQueue(paths.commit_log, size)
    found: dict[str, tuple[int, int]] = {}
    for part in LogWalk(log, log.min_offset, Checker(crc=Crc.STOPS)).parts(limit=log.capacity_end, floor=0):
        for row in part.requests:
            at, length = int(row["keys_at"]), int(row["keys_length"])
            key = bytes(part.buffer[at : at + length]).decode()
            if key:
                assert key not in found, f"{key} is stored twice"
                found[key] = int(row["queue_id"]), int(row["base_offset"])
    log.close()
    return found


def require_stored(folder: Path, acknowledged: dict[str, tuple[int, int]]) -> None:
    stored = stored_keys(folder)
    missing = {key: place for key, place in acknowledged.items() if stored.get(key) != place}
    assert not missing, f"{len(missing)} of {len(acknowledged)} acknowledged messages are missing or moved"
