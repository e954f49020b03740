"""Writes the lists of metrics into docs/metrics.md from `tidemark.metrics.table`: `make docs`; a test compares them."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.metrics.table import (
    ACCESS,
    BOTH,
    EACH,
    FOLLOWER,
    GROUP,
    PIPELINE,
    QUERY,
    ROWS,
    SLAVES,
    TLS,
    WRITER,
    MetricKind,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
HEADING = "## All metrics\n"
_KINDS = "Counters end with `_total`; all others are gauges unless marked as histograms.\n"
_SERVICES = {
    EACH: "Each of the three",
    BOTH: "Writer and query",
    TLS: "Writer and query, with TLS",
    ACCESS: "Writer and query, with an access file",
    WRITER: "Writer",
    GROUP: "Writer, as a member of a replication group",
    FOLLOWER: "Writer that follows a RocketMQ broker",
    SLAVES: "Writer whose log RocketMQ's slaves copy",
    PIPELINE: "Pipeline",
    QUERY: "Query",
}


def lists() -> str:
    """Return a Markdown list for each service: name with labels, meaning. Counters end with `_total`."""
    parts = []
    for service, title in _SERVICES.items():
        lines = [f"### {title}\n"]
        for row in ROWS:
            if row.service == service:
                labels = f"{{{','.join(row.labels)}}}" if row.labels else ""
                kind = " (histogram)" if row.kind is MetricKind.HISTOGRAM else ""
                lines.append(f"- `{row.name}{labels}`{kind}: {row.text}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def with_lists(page: str) -> str:
    """Return *page* with new lists after its last heading."""
    head, heading, _ = page.partition(HEADING)
    return f"{head}{heading}\n{_KINDS}\n{lists()}"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(with_lists(PAGE.read_text())) else 1)
