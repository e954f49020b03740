"""A broker's store with Tidemark attached in this process: a follower on a thread, the query service over HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from services.indexer.attach.follower import Follower
from services.indexer.attach.key_follower import KeyFollower
from tests.query_server import serve_query
from tests.waiting import until
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

TIMEOUT_S = 60.0
INDEX_SIZE = (16, 64)


class Attached:
    """The attachment to *root*; client: of the query service."""

    def __init__(self, root: Path, state: Path, *, index: bool) -> None:
        self.root = root
        self.state = state
        self.client: httpx.Client
        self.looks = 0
        self._index = index
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._follow, name="follower")

    def _follow(self) -> None:
        paths, storage = StorePaths(self.root, state=self.state), DiskStorage()
        try:
            follower = Follower(paths, storage)
            keys = KeyFollower(paths, storage, size=INDEX_SIZE) if self._index else None
            while not self._stopping.is_set():
                moved = follower.poll()
                self.looks += 1
                if keys is not None:
                    moved |= keys.poll(follower.position)
                if not moved:
                    self._stopping.wait(0.001)
            follower.close()
            if keys is not None:
                keys.close()
        except BaseException as error:
            self._failure = error

    def start(self) -> None:
        """Start following."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; raise the follower's failure, if any."""
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def get(self, path: str, **arguments: Any) -> dict[str, Any]:
        """Return the JSON of a response, which must be 200."""
        response = self.client.get(path, params=arguments)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def pull(self, topic: str, queue_id: int = 0, *, offset: int | str = 0, **arguments: Any) -> dict[str, Any]:
        """Pull once."""
        path = f"/v1/topics/{topic}/queues/{queue_id}/messages"
        return self.get(path, offset=offset, **{"body_encoding": "utf8", **arguments})

    def bodies(self, topic: str, queue_id: int = 0, *, offset: int | str = 0) -> list[str]:
        """Return the bodies of one pull."""
        return [message["body"] for message in self.pull(topic, queue_id, offset=offset)["messages"]]

    def watermark(self) -> int:
        """Return the physical offset of the watermark."""
        offset: int = self.get("/v1/watermark")["watermark"]["physical_offset"]
        return offset

    def let_look(self) -> None:
        """Wait until the follower has read the present log."""
        looks = self.looks
        until(lambda: self.looks > looks + 1, "it looks")

    def wait_for_watermark(self, physical_offset: int) -> None:
        """Wait until the watermark reaches *physical_offset*."""
        until(lambda: self.watermark() == physical_offset, f"the watermark reaches {physical_offset}")


@contextlib.contextmanager
def attach(root: Path, state: Path, *, index: bool = True, **settings: Any) -> Iterator[Attached]:
    """Attach to *root* until the block ends."""
    attached = Attached(root, state, index=index)
    attached.start()
    try:
        until(lambda: StorePaths(root, state=state).marks.exists() or not attached._thread.is_alive(), "it starts")
        with serve_query(root, state_root=state, **settings) as attached.client:
            until(
                lambda: attached.client.get("/readyz").status_code == 200 or not attached._thread.is_alive(),
                "it is ready",
            )
            yield attached
    finally:
        attached.stop()


class Seen(NamedTuple):
    """The state of a file or folder: every write, rename, or change of times or permissions changes at least ctime."""

    inode: int
    mode: int
    size: int
    modified_ns: int
    changed_ns: int
    content: str


def look_at(root: Path) -> dict[str, Seen]:
    """Return the state of *root* and everything below it."""
    seen: dict[str, Seen] = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.stat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        seen[str(path)] = Seen(
            status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, content
        )
    return seen
