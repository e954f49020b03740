"""The answer of GET /v1/status. A value that cannot be read from the store is None; no value is guessed."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tidemark.index.ledger import read_ledger
from tidemark.read.log.log_times import Growth, first_invisible_time, growth
from tidemark.read.watermark import Watermark
from tidemark.replication.followed_broker import read_followed_broker
from tidemark.replication.known_state import read_known_state
from tidemark.replication.member_names import name_of
from tidemark.replication.member_role import ALONE
from tidemark.store.flushed import commits_ahead
from tidemark.store.lock import lock_holder
from tidemark.version import program_version

from ..schema.position import position_json
from ..state.service_state import ServiceState
from .group_offset_document import offset_json

_GROWTH_WINDOW_MS = 3_600_000  # one hour, or back to the beginning of an earlier file
_LEAST_GROWTH_MS = 60_000  # a shorter time shows no reliable rate
_MOST_GROUPS = 5


def _now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


def published_age_ms(watermark: Watermark) -> int | None:
    """Return the time since a mark last moved; None if none ever moved."""
    return _age_ms(watermark.published_ms) if watermark.published_ms else None


def _age_ms(time_ms: int) -> int:
    """Return the age of *time_ms*; 0 for a future time, because the clock may have been set back."""
    return max(0, _now_ms() - time_ms)


def status_answer(state: ServiceState) -> dict[str, Any]:
    """Return the answer: writer, pipeline, log, damage, disk and groups."""
    store = state.store
    watermark = store.watermark()
    damage = read_ledger(store.paths.indexer)
    listing = store.log.listing()
    grown = growth(
        store.log,
        watermark.committed_offset,
        now_ms=_now_ms(),
        window_ms=_GROWTH_WINDOW_MS,
        least_ms=_LEAST_GROWTH_MS,
    )
    return {
        "store": state.settings.store_name,
        "version": program_version(),
        "attached": store.paths.is_attached,
        **position_json(watermark),
        "log": {
            "min_physical_offset": listing.starts[0] if listing.starts else 0,
            "files": len(listing.starts),
            "file_size_bytes": listing.file_size,
            "growth": None if grown is None else {**grown._asdict(), "bytes_per_s": grown.bytes_per_s},
        },
        "writer": _writer(state),
        "replication": _replication(state),
        "follow": _follow(state),
        "pipeline": _pipeline(state, watermark),
        "corruptions": len(damage),
        "newest_corruption": max(damage, key=lambda entry: entry["found_ms"], default=None),
        "topics": len(store.topics()),
        "disk": _disk(state, grown),
        "groups": _groups(state, watermark),
        "query": {"waiting_requests": state.watcher.waiting, "owns_consumer_offsets": state.offsets.is_owner},
    }


def _writer(state: ServiceState) -> dict[str, Any]:
    store = state.store
    holder = lock_holder(store.paths.lock)
    ahead = commits_ahead(store.paths.flushed)
    term = store.watermarks.term
    return {
        "present": holder is not None,
        "pid": holder or None,
        "term": term.number,
        "recovered_end_offset": term.recovered_end,
        "flush_mode": None if ahead is None else "async" if ahead else "sync",
        "last_append_ms": store.watermarks.flushed_store_time,
        "forwarding_to": state.settings.writer_address,
    }


def _replication(state: ServiceState) -> dict[str, Any] | None:
    """Return what this member knows of its group; None for a store of its own."""
    known, epoch = read_known_state(state.store.paths.replication), state.store.watermarks.role.written_epoch()
    if known is None or epoch == ALONE:
        return None
    return {
        "role": "replica" if epoch is None else "writer",
        "epoch": known.epoch,
        "writer": None if known.writer is None else name_of(known.writer),
        "in_sync": sorted(map(name_of, known.in_sync)),
        "eligible": sorted(map(name_of, known.eligible)),
        "min_in_sync": known.min_in_sync,
        "may_lack_messages": state.store.watermark().may_lack,
    }


def _follow(state: ServiceState) -> dict[str, Any] | None:
    """Return how the copy of a RocketMQ broker's log goes; None for a store that follows none."""
    followed = read_followed_broker(state.store.paths.follow)
    return None if followed is None else followed._asdict()


def _pipeline(state: ServiceState, watermark: Watermark) -> dict[str, Any]:
    marks = state.store.watermarks.marks
    return {
        "published_age_ms": published_age_ms(watermark),
        "alive_age_ms": None if marks is None or not marks.alive_ms else _age_ms(marks.alive_ms),
        "behind_since_ms": first_invisible_time(state.store.log, watermark),
        "shards": []
        if marks is None
        else [
            {
                "shard": shard,
                "visible": marks.visible(shard),
                "durable": marks.durable(shard),
                "term": marks.shard_term(shard),
            }
            for shard in range(marks.shards)
        ],
    }


def _disk(state: ServiceState, grown: Growth | None) -> dict[str, Any]:
    paths = state.store.paths
    root = os.statvfs(paths.root)
    rate = 0.0 if grown is None else grown.bytes_per_s
    return {
        "free_bytes": root.f_bavail * root.f_frsize,
        "total_bytes": root.f_blocks * root.f_frsize,
        "full_in_s": int(_free_bytes(paths.log_folders.writable) / rate) if rate else None,
    }


def _free_bytes(folders: tuple[Path, ...]) -> int:
    """Return the free bytes of the disks that hold *folders*, counting each disk once."""
    disks = {folder.stat().st_dev: os.statvfs(folder) for folder in folders if folder.is_dir()}
    return sum(disk.f_bavail * disk.f_frsize for disk in disks.values())


def _groups(state: ServiceState, watermark: Watermark) -> dict[str, Any]:
    """Return the number of groups with offsets and the greatest lags; no lags beyond query_max_status_offsets."""
    offsets = list(state.offsets.all())
    groups = {offset.group for offset in offsets}
    if len(offsets) > state.settings.query_max_status_offsets:
        return {"count": len(groups), "most_lag": None}
    lags: Counter[str] = Counter()
    for offset in offsets:
        lags[offset.group] += offset_json(state, watermark, offset)["lag"] or 0
    most = [{"group": group, "lag": lag} for group, lag in lags.most_common(_MOST_GROUPS) if lag]
    return {"count": len(groups), "most_lag": most}
