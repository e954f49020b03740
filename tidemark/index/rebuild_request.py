"""Requests to rebuild derived files: `tidemark/indexer/rebuild-<shard>`, and `rebuild-index` for the key index.

A request is durable before the first file is set aside, and is removed when all named files are built and synced. After
a kill in between, the shard's next holder continues it. Marks do not move, so the visible range does not shrink.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from tidemark.format.check import shard_of
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage, replace_file

Queue = tuple[str, int]
_INDEX = "rebuild-index"


@dataclass(frozen=True)
class RebuildRequest:
    """The files of one shard to rebuild.

    queues    topic and queue id of each; empty for the key index
    first     name of the oldest index file to rebuild, together with all newer ones; "" for all
    position  physical offset at which to continue; None until the files are set aside
    """

    queues: frozenset[Queue] = frozenset()
    first: str = ""
    position: int | None = None


def queues_path(paths: StorePaths, shard: int) -> Path:
    """Return the path of the request for a shard of queues."""
    return paths.indexer / f"rebuild-{shard}"


def index_path(paths: StorePaths) -> Path:
    """Return the path of the request for the key index."""
    return paths.indexer / _INDEX


def save_request(path: Path, request: RebuildRequest, storage: Storage) -> None:
    """Write a request durably."""
    value = {"queues": sorted(map(list, request.queues)), "first": request.first, "position": request.position}
    replace_file(storage, path, orjson.dumps(value), keep_previous=False)


def load_request(path: Path) -> RebuildRequest | None:
    """Return the request at *path*; None if there is none. ValueError if the file's content is invalid."""
    try:
        value = orjson.loads(path.read_bytes())
        queues = frozenset((str(topic), int(queue_id)) for topic, queue_id in value["queues"])
        position = value["position"]
        return RebuildRequest(queues, str(value["first"]), None if position is None else int(position))
    except FileNotFoundError:
        return None
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is not a rebuild request") from error


def request_queues(paths: StorePaths, queues: Iterable[Queue], *, shards: int, storage: Storage) -> None:
    """Add *queues* to the requests. No task of the pipeline runs."""
    wanted: dict[int, set[Queue]] = {}
    for topic, queue_id in queues:
        wanted.setdefault(shard_of(topic.encode(), queue_id, shards), set()).add((topic, queue_id))
    for shard, own in wanted.items():
        path = queues_path(paths, shard)
        known = load_request(path)
        save_request(path, RebuildRequest(frozenset(own) | (known.queues if known else frozenset())), storage)


def request_index(paths: StorePaths, first: str, storage: Storage) -> None:
    """Request the index files from *first* to the newest. No task of the pipeline runs."""
    known = load_request(index_path(paths))
    first = first if known is None else min(first, known.first)
    save_request(index_path(paths), RebuildRequest(first=first), storage)


def divide_again(paths: StorePaths, *, shards: int, storage: Storage) -> None:
    """Move requested queues to the requests of the shards that own them now. No task of the pipeline runs."""
    queues: set[Queue] = set()
    moved: list[Path] = []
    for path in sorted(paths.indexer.glob("rebuild-*")):
        request = load_request(path) if path.name.removeprefix("rebuild-").isdigit() else None
        if request is None:
            continue
        shard = int(path.name.removeprefix("rebuild-"))
        if any(shard_of(topic.encode(), queue_id, shards) != shard for topic, queue_id in request.queues):
            queues |= request.queues
            moved.append(path)
    if moved:
        request_queues(paths, queues, shards=shards, storage=storage)
        for path in moved:
            kept = load_request(path)
            own = {q for q in (kept.queues if kept else ()) if shard_of(q[0].encode(), q[1], shards) == _number(path)}
            if own:
                save_request(path, RebuildRequest(frozenset(own)), storage)
            else:
                storage.unlink(path)


def _number(path: Path) -> int:
    return int(path.name.removeprefix("rebuild-"))


def at(request: RebuildRequest, position: int) -> RebuildRequest:
    """Return a copy of the request with its files set aside and built up to *position*."""
    return replace(request, position=position)
