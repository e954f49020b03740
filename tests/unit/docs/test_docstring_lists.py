"""Docstrings as the site shows them."""

from __future__ import annotations

import pytest

from scripts.docstring_lists import with_lists
from tidemark.client import Consumer, Producer


def test_a_docstring_table_becomes_a_list() -> None:
    """Continued lines belong to the name above; the longest name may be followed by one space."""
    table = "What it gives.\n\na      one\n       or two\nlonger three\n\nThe end, as it is.\nIn two lines."
    shown = "What it gives.\n\n- **a**: one or two\n- **longer**: three\n\nThe end, as it is.\nIn two lines."
    assert with_lists(table) == shown


@pytest.mark.parametrize("prose", ["One line.", "Two lines,\nthe second.", "    an indented\n    drawing  here", ""])
def test_prose_in_a_docstring_is_unchanged(prose: str) -> None:
    """Drawings are unchanged too."""
    assert with_lists(prose) == prose


@pytest.mark.parametrize("documented", [Producer, Consumer])
def test_parameters_of_the_client_become_lists(documented: type) -> None:
    """The recognised style is the one in use."""
    import inspect

    assert "\n- **timeout_s**: " in with_lists(inspect.getdoc(documented) or "")
