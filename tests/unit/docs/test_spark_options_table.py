"""The documented options of Spark's source and sink are the real ones."""

from __future__ import annotations

from scripts.spark_options_table import PAGE, with_lists


def test_the_lists_of_options_are_current() -> None:
    """`make docs` writes the lists."""
    page = PAGE.read_text()
    assert page == with_lists(page)
    assert "- `failOnDataLoss=true`: " in page
    assert "- `writers` (required): " in page
    assert "- `batchSize=1000`: " in page
