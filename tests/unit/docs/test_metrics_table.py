"""The documented metrics are the served ones."""

from __future__ import annotations

from scripts.metrics_table import PAGE, with_tables


def test_the_tables_of_docs_metrics_md_are_current() -> None:
    """`make docs` writes the tables."""
    page = PAGE.read_text()
    assert page == with_tables(page)
    assert "| `rocketmq_messages_in_total{topic}` | counter |" in page
