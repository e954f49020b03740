"""Output for terminals."""

from __future__ import annotations

import pytest

from tidemark.cli.terminal.output import cell_text, printable, time_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain ü 日", "plain ü 日"), ("a\nb", r"a\nb"), ("\x1b[31mred", r"\x1b[31mred"), ("\u202e", r"\u202e"), ("", "")],
)
def test_terminal_control_characters_are_escaped(text: str, shown: str) -> None:
    """A message's body is untrusted text."""
    assert printable(text) == shown


def test_times_are_rfc_3339_in_utc() -> None:
    """A number outside of the calendar is printed as a number."""
    assert time_text(1795240089391) == "2026-11-21T05:48:09.391Z"
    assert time_text(-1) == "1969-12-31T23:59:59.999Z"
    assert time_text((1 << 63) - 1) == str((1 << 63) - 1)


def test_cells_show_numbers_in_groups_and_none_as_nothing() -> None:
    """Booleans are printed as words."""
    assert [cell_text(value) for value in (1234567, None, True, "x")] == ["1,234,567", "", "True", "x"]
