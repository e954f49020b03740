"""The documented settings are the real ones."""

from __future__ import annotations

from scripts.settings_table import BASIC, PAGE, page
from tidemark.settings.registry import SERVICES, settings_class, variable


def test_docs_settings_md_is_current() -> None:
    """`make docs` writes the page."""
    assert PAGE.read_text() == page()


def test_every_setting_is_in_one_part_of_the_page() -> None:
    """A setting of several services may have several entries, but all of them are basic or all are for experts."""
    basic, expert = PAGE.read_text().partition("\n## Expert\n")[::2]
    fields = {name for service in SERVICES for name in settings_class(service).model_fields}
    assert set(BASIC) < fields
    for name in fields:
        parts = [f"- `{variable(name)}{end}" in part for part in (basic, expert) for end in ("=", "`")]
        assert any(parts[:2]) == (name in BASIC)
        assert any(parts[2:]) == (name not in BASIC)


def test_an_entry_has_default_and_meaning() -> None:
    assert "- `TIDEMARK_FLUSH_MODE=sync`: sync: " in PAGE.read_text().partition("### Writer\n")[2]
