"""The tables of docs/scale.md follow from the model and the committed constants."""

from __future__ import annotations

import pytest

from benchmarks.scale.constants import load
from benchmarks.scale.tables import parts
from scripts.scale_tables import PAGE, current_page, page_with


def test_the_page_is_current() -> None:
    """`make scale` and `make docs` write the page."""
    assert PAGE.read_text() == current_page()


def test_tables_follow_the_constants() -> None:
    """A writer of twice the cost is used up at half the rate, and more pairs are needed."""
    measured = load()
    dear = measured.constants.__class__(
        **{name: value * (2 if name.startswith("writer_s") else 1) for name, value in vars(measured.constants).items()}
    )
    before, after = (parts(one)["limits"] for one in (measured, measured._replace(constants=dear)))
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert any(line.startswith("| writer's core") for line in changed)
    assert not any(line.startswith("| core of the key index") for line in changed)


def test_a_table_without_a_marked_position_is_an_error() -> None:
    """A marked position without a table is an error too."""
    assert page_with("a\n<!-- scale: x -->\nold\n<!-- scale end -->\nb\n", {"x": "new"}) == (
        "a\n<!-- scale: x -->\nnew\n<!-- scale end -->\nb\n"
    )
    with pytest.raises(ValueError, match="marks for the tables"):
        page_with("a\n", {"x": "new"})
