"""Parsing of queue positions on a command line."""

from __future__ import annotations

import pytest
import typer

from tidemark.cli.reading.queue_places import Place, PlaceKind


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", Place(PlaceKind.EARLIEST)),
        ("latest", Place(PlaceKind.LATEST)),
        ("0", Place(PlaceKind.OFFSET, 0)),
        ("1795240089391", Place(PlaceKind.OFFSET, 1795240089391)),
        ("1795240089391ms", Place(PlaceKind.TIME, 1795240089391)),
        ("1970-01-01T00:00:01Z", Place(PlaceKind.TIME, 1000)),
        ("1970-01-01T01:00:00.5+01:00", Place(PlaceKind.TIME, 500)),
    ],
)
def test_a_place_is_what_it_says(text: str, place: Place) -> None:
    """A bare number is always an offset."""
    assert Place.parse(text, option="--from") == place


@pytest.mark.parametrize("text", ["", "-1", "tomorrow", "1970-01-01T00:00:01", "12 ms"])
def test_anything_else_is_wrong_usage(text: str) -> None:
    """A time without a zone is refused too."""
    with pytest.raises(typer.BadParameter):
        Place.parse(text, option="--from")
