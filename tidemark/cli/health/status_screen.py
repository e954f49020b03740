"""The screen of `status`, as text."""

from __future__ import annotations

import time
from typing import Any

from tidemark.cli.health.durations import duration_text
from tidemark.cli.terminal.output import make_facts, time_text

_UNKNOWN = "unknown"
_Status = dict[str, Any]


def screen(seen: _Status) -> Any:
    """Return one line per name and value, problems first."""
    store = seen["store"]
    now_ms = time.time_ns() // 1_000_000
    facts: dict[str, object] = {
        "health": "healthy" if seen["healthy"] else "NOT HEALTHY",
        "problems": seen["problems"] or "none",
        "writer": _writer(seen["writer"], store, now_ms),
        "pipeline": _pipeline(seen, now_ms),
        "query": _service(seen["query"], seen["query"]["url"]),
    }
    if store:
        facts |= _store_facts(store, now_ms)
    return make_facts(facts)


def _service(asked: _Status, address: str) -> str:
    if asked["answers"]:
        return f"{address}  answers"
    return f"{address}  {'REFUSES THE REQUEST' if asked.get('refuses') else 'DOES NOT ANSWER'}"


def _writer(writer: _Status, store: _Status | None, now_ms: int) -> str:
    if store and store["attached"]:
        return "none: attached, read-only"
    if not writer["answers"]:
        return _service(writer, writer["address"])
    takes = "takes writes" if writer["free_disk_bytes"] >= writer["min_free_disk_bytes"] else "REFUSES APPENDS"
    last_ms = store["writer"]["last_append_ms"] if store else None
    last = "last append " + (_UNKNOWN if last_ms is None else _ago(last_ms, now_ms))
    return f"{writer['address']}  {takes}, flush mode {writer['flush_mode']}, {last}"


def _pipeline(seen: _Status, now_ms: int) -> str:
    store = seen["store"]
    if store is None:
        return f"{_UNKNOWN}: the query service does not answer"
    quiet_ms = seen["pipeline"]["quiet_ms"]
    there = "follows"
    if not seen["pipeline"]["answers"]:
        there = "DOES NOT RUN" + ("" if quiet_ms is None else f": quiet for {duration_text(quiet_ms / 1000)}")
    if not store["lag_bytes"]:
        return f"{there}, everything is visible"
    since_ms = store["pipeline"]["behind_since_ms"]
    oldest = _UNKNOWN if since_ms is None else f"stored {_ago(since_ms, now_ms)}"
    return f"{there}, {store['lag_bytes']:,} bytes behind; first message: {oldest}"


def _store_facts(store: _Status, now_ms: int) -> dict[str, object]:
    log = store["log"]
    return {
        "damaged": _damage(store),
        "disk": _disk(store),
        "groups": _groups(store["groups"]),
        "store": f"{store['store']}, term {store['watermark']['term']}, version {store['version']}",
        "watermark": _moved(store, now_ms),
        "committed": store["committed_offset"],
        "log": f"from {log['min_physical_offset']:,}: {log['files']} files of {log['file_size_bytes']:,} bytes",
        "topics": store["topics"],
    }


def _moved(store: _Status, now_ms: int) -> str:
    watermark = store["watermark"]
    moved = f"; moved {_ago(watermark['published_ms'], now_ms)}" if watermark["published_ms"] else "; has never moved"
    return f"{watermark['physical_offset']:,}{moved}"


def _damage(store: _Status) -> str:
    newest = store["newest_corruption"]
    if newest is None:
        return "nothing"
    found = f"{newest['reason']} at {newest['physical_offset']:,}, found {time_text(newest['found_ms'])}"
    return f"{store['corruptions']:,} places, the newest: {found}"


def _disk(store: _Status) -> str:
    disk, growth = store["disk"], store["log"]["growth"]
    free, total = disk["free_bytes"], disk["total_bytes"]
    room = f"{free / 1e9:,.1f} GB free of {total / 1e9:,.1f} GB ({free / max(1, total):.0%})"
    if growth is None or disk["full_in_s"] is None:
        return f"{room}; how long it lasts is {_UNKNOWN}"
    over = duration_text((growth["until_ms"] - growth["since_ms"]) / 1000)
    rate = f"{growth['bytes_per_s'] / 1e6:,.3f} MB/s over the last {over}"
    return f"{room}; full in {duration_text(disk['full_in_s'])}, if nothing is deleted (log: {rate})"


def _groups(groups: _Status) -> str:
    if groups["most_lag"] is None:
        return f"{groups['count']:,}; their lag is {_UNKNOWN}: too many offsets (TIDEMARK_QUERY_MAX_STATUS_OFFSETS)"
    if not groups["most_lag"]:
        return f"{groups['count']:,}, none lags"
    lags = ", ".join(f"{one['group']} {one['lag']:,}" for one in groups["most_lag"])
    return f"{groups['count']:,}; most lag, messages: {lags}"


def _ago(then_ms: int, now_ms: int) -> str:
    """Return the distance to a past time; the time itself if another clock is ahead of this one."""
    return f"{duration_text((now_ms - then_ms) / 1000)} ago" if then_ms <= now_ms else f"at {time_text(then_ms)}"
