"""The problems of a store, derived from the data of `status` by pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tidemark.cli.health.durations import duration_text


class HealthLimits(NamedTuple):
    """Limits of a healthy store."""

    max_behind_s: float
    min_disk_hours: float


def problems_of(seen: dict[str, Any], limits: HealthLimits, *, now_ms: int) -> list[str]:
    """Return one line per problem; [] for a healthy store. seen: the JSON document of `status`."""
    return [
        *_unanswered(seen),
        *_refused(seen["writer"]),
        *(_of_store(seen["store"], limits, now_ms) if seen["store"] else ()),
    ]


def _unanswered(seen: dict[str, Any]) -> Iterator[str]:
    for name in ("writer", "query"):
        if not seen[name]["answers"]:
            how = "refuses the request" if seen[name].get("refuses") else "does not answer"
            yield f"the {name} {how}: {seen[name]['problem']}"
    if seen["store"] and not seen["pipeline"]["answers"]:
        quiet_ms = seen["pipeline"]["quiet_ms"]
        yield "the pipeline does not run" + (
            "" if quiet_ms is None else f" (quiet for {duration_text(quiet_ms / 1000)})"
        )


def _refused(writer: dict[str, Any]) -> Iterator[str]:
    """Report that a writer refuses appends, derived from its numbers."""
    free, least = writer.get("free_disk_bytes", 0), writer.get("min_free_disk_bytes", 0)
    if free < least:
        yield f"appends are refused: {free:,} bytes of disk are free; at least {least:,} are required"


def _of_store(store: dict[str, Any], limits: HealthLimits, now_ms: int) -> Iterator[str]:
    since_ms = store["pipeline"]["behind_since_ms"]
    if since_ms is not None and now_ms - since_ms > limits.max_behind_s * 1000:
        behind = duration_text((now_ms - since_ms) / 1000)
        yield f"the pipeline is {behind} and {store['lag_bytes']:,} bytes behind"
    group = store.get("replication")
    if group is not None and group["writer"] is not None and len(group["in_sync"]) < group["min_in_sync"]:
        yield (
            f"appends are refused: {len(group['in_sync'])} members of the group are in sync "
            f"({', '.join(group['in_sync'])}), and {group['min_in_sync']} are needed"
        )
    followed = store.get("follow")
    if followed is not None and not followed["is_connected"]:
        yield f"broker {followed['broker']} is not followed: {followed['problem']}"
    if store["corruptions"]:
        newest = store["newest_corruption"]
        yield f"damaged places: {store['corruptions']}, the newest at {newest['physical_offset']} ({newest['reason']})"
    full_in_s = store["disk"]["full_in_s"]
    if full_in_s is not None and full_in_s < limits.min_disk_hours * 3600:
        yield f"the disk is full in {duration_text(full_in_s)} at the log's recent growth"
