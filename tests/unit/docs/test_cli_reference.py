"""docs/cli.md matches the command."""

from __future__ import annotations

from scripts.cli_reference import PAGE, page


def test_docs_cli_md_is_current() -> None:
    """`make docs` writes the page."""
    assert PAGE.read_text() == page()
