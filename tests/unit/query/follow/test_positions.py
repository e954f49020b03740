from __future__ import annotations

import pytest

from services.indexer.query.follow.positions import Position, parse_position, parse_positions, positions_text


def test_positions_are_read_as_they_are_written() -> None:
    positions = [Position("orders", 0, "17"), Position("%RETRY%a-b_c", 12, "latest")]
    assert positions_text(positions) == "orders:0:17,%RETRY%a-b_c:12:latest"
    assert parse_positions(positions_text(positions)) == positions


def test_a_position_may_take_its_offset_from_the_request() -> None:
    assert parse_position("orders:3", default_offset="earliest") == ("orders", 3, "earliest")
    assert parse_position("orders:3:9", default_offset="earliest") == ("orders", 3, "9")


@pytest.mark.parametrize(
    "text", ["", "orders", "orders:0", "orders:0:1:2", "or/ders:0:1", "orders:-1:1", "orders:0:first", "orders:0:-1"]
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_position(text)
