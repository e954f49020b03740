"""Writes the table of metrics into docs/metrics.md from `tidemark.metrics.table`: `make docs`; a test compares them."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.metrics.table import ACCESS, BOTH, EACH, PIPELINE, QUERY, ROWS, TLS, WRITER

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
HEADING = "## All metrics\n"
_SERVICES = {
    EACH: "Each of the three",
    BOTH: "Writer and query",
    TLS: "Writer and query, with TLS",
    ACCESS: "Writer and query, with an access file",
    WRITER: "Writer",
    PIPELINE: "Pipeline",
    QUERY: "Query",
}


def tables() -> str:
    """Return a Markdown table for each service: name with labels, type, meaning."""
    parts = []
    for service, title in _SERVICES.items():
        lines = [f"### {title}\n", "| metric | type | meaning |", "|---|---|---|"]
        for row in ROWS:
            if row.service == service:
                labels = f"{{{','.join(row.labels)}}}" if row.labels else ""
                lines.append(f"| `{row.name}{labels}` | {row.kind.value} | {row.text} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def with_tables(page: str) -> str:
    """Return *page* with new tables after its last heading."""
    head, heading, _ = page.partition(HEADING)
    return f"{head}{heading}\n{tables()}"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(with_tables(PAGE.read_text())) else 1)
