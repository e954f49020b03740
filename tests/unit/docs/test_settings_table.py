"""The documented settings are the real ones."""

from __future__ import annotations

from scripts.settings_table import PAGE, with_lists


def test_the_settings_of_docs_operations_md_are_current() -> None:
    """`make docs` writes the lists."""
    page = PAGE.read_text()
    assert page == with_lists(page)
    assert "- `TIDEMARK_FLUSH_MODE=sync`: " in page.partition("### Writer\n")[2]
