"""Writes Grafana's dashboard deploy/grafana/tidemark.json from the panels below: `make docs`; a test compares them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).resolve().parents[1] / "deploy" / "grafana" / "tidemark.json"
_COLUMNS, _WIDTH, _HEIGHT = 3, 8, 7  # Grafana's grid is 24 wide
_WINDOW = "[$__rate_interval]"
_QUANTILES = ((0.5, "median"), (0.99, "99 %"))
_SOURCE = {"type": "prometheus", "uid": "${source}"}


class Query(NamedTuple):
    """A PromQL query, and the legend of its series."""

    promql: str
    legend: str


class Panel(NamedTuple):
    """One panel. unit: one of Grafana's unit names."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"


def _rate(name: str, by: str) -> str:
    return f"sum by ({by}) (rate({name}{_WINDOW}))"


def _quantiles(name: str, *, by: str = "") -> tuple[Query, ...]:
    """Return queries for the median and the 99th percentile of a histogram."""
    group, label = (f"le, {by}", f" {{{{{by}}}}}") if by else ("le", "")
    buckets = _rate(f"{name}_bucket", group)
    return tuple(Query(f"histogram_quantile({q}, {buckets})", f"{title}{label}") for q, title in _QUANTILES)


PANELS = (
    Panel("Services", "bool_yes_no", (Query('up{job=~"tidemark-.*"}', "{{job}}"),), kind="stat"),
    Panel("Damaged places", "short", (Query("max by (reason) (tidemark_damaged_places)", "{{reason}}"),), kind="stat"),
    Panel("Pipeline's last sign of life", "s", (Query("min(tidemark_pipeline_alive_age_seconds)", "ago"),), "stat"),
    Panel("Messages in", "cps", (Query(_rate("rocketmq_messages_in_total", "topic"), "{{topic}}"),)),
    Panel("Messages out", "cps", (Query(_rate("rocketmq_messages_out_total", "topic"), "{{topic}}"),)),
    Panel(
        "Bytes in and out",
        "Bps",
        (
            Query(f"sum(rate(rocketmq_throughput_in_total{_WINDOW}))", "in, as records"),
            Query(f"sum(rate(rocketmq_throughput_out_total{_WINDOW}))", "out, as answers"),
        ),
    ),
    Panel("Append to visible", "s", _quantiles("tidemark_append_visible_seconds")),
    Panel(
        "Behind",
        "bytes",
        (
            Query("max(rocketmq_storage_dispatch_behind_bytes)", "committed, not visible"),
            Query("max(rocketmq_storage_flush_behind_bytes)", "written, not synced"),
        ),
    ),
    Panel(
        "Log and watermark",
        "Bps",
        (
            Query(f"max(rate(tidemark_committed_bytes{_WINDOW}))", "committed"),
            Query(f"max(rate(tidemark_watermark_bytes{_WINDOW}))", "visible"),
        ),
    ),
    Panel("fdatasync", "s", _quantiles("tidemark_fdatasync_seconds")),
    Panel(
        "Group commit",
        "short",
        (
            Query(
                f"sum(rate(tidemark_group_commit_batches_sum{_WINDOW})) / "
                f"sum(rate(tidemark_group_commit_batches_count{_WINDOW}))",
                "appends a sync",
            ),
            Query(f"sum(rate(tidemark_fdatasync_seconds_count{_WINDOW}))", "syncs a second"),
        ),
    ),
    Panel("Epoch hand-over", "s", _quantiles("tidemark_epoch_hand_over_seconds")),
    Panel(
        "Appends under way",
        "short",
        (
            Query('max(rocketmq_processor_watermark{processor="send"})', "waiting for their turn"),
            Query("max(tidemark_in_flight_bytes)", "bytes in flight"),
        ),
    ),
    Panel(
        "Refused and repeated appends",
        "cps",
        (
            Query(_rate("tidemark_refused_appends_total", "reason"), "{{reason}}"),
            Query(f"sum(rate(tidemark_duplicate_batches_total{_WINDOW}))", "repeats"),
        ),
    ),
    Panel(
        "Disk",
        "bytes",
        (
            Query("min(tidemark_disk_free_bytes)", "free"),
            Query("max(rocketmq_storage_size)", "log files"),
            Query(f"sum(rate(tidemark_retention_deleted_bytes_total{_WINDOW}))", "deleted a second"),
        ),
    ),
    Panel(
        "Consumer lag",
        "short",
        (Query("max by (topic, consumer_group) (rocketmq_consumer_lag_messages)", "{{consumer_group}} in {{topic}}"),),
    ),
    Panel(
        "Oldest message not consumed",
        "ms",
        (Query("max by (topic, consumer_group) (rocketmq_consumer_lag_latency)", "{{consumer_group}} in {{topic}}"),),
    ),
    Panel("Oldest message kept", "ms", (Query("max(rocketmq_storage_message_reserve_time)", "stored ago"),)),
    Panel("Requests", "reqps", (Query(_rate("tidemark_query_requests_total", "status"), "{{status}}"),)),
    Panel("Time to an answer, waiting included", "s", _quantiles("tidemark_query_request_seconds", by="path")),
    Panel(
        "Requests that wait for messages",
        "short",
        (
            Query("sum(tidemark_query_waiting_requests)", "waiting"),
            Query("sum(tidemark_query_followers)", "following"),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    return {
        "uid": "tidemark",
        "title": "Tidemark",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    return {
        "id": number + 1,
        "type": panel.kind,
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + i), "datasource": _SOURCE, "expr": query.promql, "legendFormat": query.legend}
            for i, query in enumerate(panel.queries)
        ],
    }


def text() -> str:
    """Return the content of the file."""
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    sys.exit(0 if FILE.write_text(text()) else 1)
