"""The folder of the user's cache in which the comparison keeps the products, servers and packages that it fetches."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def locked_cache(name: str) -> Iterator[Path]:
    """Yield the cache's folder *name*, which no other process changes meanwhile."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = home / "tidemark" / name
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache


def digest(paths: Sequence[Path]) -> str:
    """Return a short hash of the contents of *paths*."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]
