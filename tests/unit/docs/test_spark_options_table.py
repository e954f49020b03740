"""The documented options of Spark's source and sink are the real ones."""

from __future__ import annotations

from scripts.spark_options_table import PAGE, with_tables


def test_the_tables_of_options_are_current() -> None:
    """`make docs` writes the tables."""
    page = PAGE.read_text()
    assert page == with_tables(page)
    assert "| `failOnDataLoss` | `true` |" in page
    assert "| `batchSize` | `1000` |" in page
