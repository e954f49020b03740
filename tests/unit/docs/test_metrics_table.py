"""The documented metrics are the served ones."""

from __future__ import annotations

from scripts.metrics_table import PAGE, with_lists
from tidemark.metrics.table import ROWS, MetricKind


def test_the_lists_of_docs_metrics_md_are_current() -> None:
    """`make docs` writes the lists."""
    page = PAGE.read_text()
    assert page == with_lists(page)
    assert "- `rocketmq_messages_in_total{topic}`: " in page
    assert "- `tidemark_fdatasync_seconds` (histogram): " in page


def test_names_that_end_with_total_are_those_of_counters() -> None:
    """The page names the kind of histograms only."""
    assert all(row.name.endswith("_total") == (row.kind is MetricKind.COUNTER) for row in ROWS)
