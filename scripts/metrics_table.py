"""Writes the table of metrics into docs/metrics.md from the table that is served: `make docs`; a test compares them."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.metrics.table import ACCESS, BOTH, EACH, PIPELINE, QUERY, ROWS, TLS, WRITER

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
HEADING = "## All metrics\n"
_SERVICES = {
    EACH: "Each of the three",
    BOTH: "Writer and query",
    TLS: "Writer and query, where they speak TLS",
    ACCESS: "Writer and query, where there is an access file",
    WRITER: "Writer",
    PIPELINE: "Pipeline",
    QUERY: "Query",
}


def tables() -> str:
    """A table a service: name, type, labels, whose name it is, meaning. Markdown."""
    parts = []
    for service, title in _SERVICES.items():
        lines = [f"### {title}\n", "| metric | type | labels | name | |", "|---|---|---|---|---|"]
        for row in ROWS:
            if row.service == service:
                whose = "RocketMQ's" if row.name.startswith("rocketmq_") else "ours"
                labels = ", ".join(f"`{label}`" for label in row.labels) or "–"
                lines.append(f"| `{row.name}` | {row.kind.value} | {labels} | {whose} | {row.text} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def with_tables(page: str) -> str:
    """The page with what stands behind its last heading replaced."""
    head, heading, _ = page.partition(HEADING)
    return f"{head}{heading}\n{tables()}"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(with_tables(PAGE.read_text())) else 1)
