"""Parsing of queue positions on a command line."""

from __future__ import annotations

import pytest
import typer

from tidemark.cli.reading.queue_places import PlaceKind, StartPlace


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", StartPlace(PlaceKind.EARLIEST)),
        ("latest", StartPlace(PlaceKind.LATEST)),
        ("0", StartPlace(PlaceKind.OFFSET, 0)),
        ("1795240089391", StartPlace(PlaceKind.OFFSET, 1795240089391)),
        ("1795240089391ms", StartPlace(PlaceKind.TIME, 1795240089391)),
        ("1970-01-01T00:00:01Z", StartPlace(PlaceKind.TIME, 1000)),
        ("1970-01-01T01:00:00.5+01:00", StartPlace(PlaceKind.TIME, 500)),
    ],
)
def test_a_queue_position_is_parsed_as_offset_time_or_name(text: str, place: StartPlace) -> None:
    """A bare number is always an offset."""
    assert StartPlace.parse(text, option="--from") == place


@pytest.mark.parametrize("text", ["", "-1", "tomorrow", "1970-01-01T00:00:01", "12 ms", "-12ms"])
def test_an_invalid_queue_position_is_a_usage_error(text: str) -> None:
    """A time without a zone is refused too."""
    with pytest.raises(typer.BadParameter):
        StartPlace.parse(text, option="--from")


def test_the_error_lists_all_forms_of_a_position_with_an_example() -> None:
    """A duration without its sign gets a hint."""
    with pytest.raises(typer.BadParameter) as refused:
        StartPlace.parse("1h", option="--from")
    assert "'1h' is not earliest, latest, an OFFSET or a TIME; write -1h for 1h ago" in refused.value.message
    for form in ("-1h30m", "now", "today", "yesterday", "2026-01-31", "T12:00:00Z", "ms", "For example: --from -1h"):
        assert form in refused.value.message
