"""The documented settings are the real ones."""

from __future__ import annotations

from scripts.settings_table import PAGE, with_table


def test_the_table_of_settings_in_operations_is_current() -> None:
    """`make docs` writes the table."""
    page = PAGE.read_text()
    assert page == with_table(page)
    assert "`TIDEMARK_FLUSH_MODE` | writer | `sync`" in page
