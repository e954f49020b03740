"""The documented command is the real one."""

from __future__ import annotations

from scripts.cli_reference import PAGE, page


def test_docs_cli_md_is_current() -> None:
    """`make docs` writes it."""
    assert PAGE.read_text() == page()
