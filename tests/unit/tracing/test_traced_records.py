"""Trace contexts found in bytes."""

from __future__ import annotations

from tests.builders import buffer_of_records, properties
from tidemark.format.check import Checker
from tidemark.tracing.traced_records import traced_records

SAMPLED = f"00-{'ab' * 16}-{'cd' * 8}-01"
NOT_SAMPLED = f"00-{'ab' * 16}-{'cd' * 8}-00"


def found(*carried: dict[str, str], limit: int = 100, chosen: slice = slice(None)) -> list[tuple[str, int]]:
    """In records with these properties, back to back; *chosen*: of which rows there are."""
    buffer, places, _ = buffer_of_records({"properties": properties(one)} for one in carried)
    rows = Checker().check(buffer, base_offset=0).requests
    assert len(rows) == len(carried)
    return [(one.traceparent, one.row) for one in traced_records(buffer, places[chosen], rows[chosen], limit=limit)]


def test_the_records_of_sampled_messages_are_found() -> None:
    """Wherever the property stands among others; what is not sampled is nobody's."""
    assert found(
        {},
        {"traceparent": SAMPLED},
        {"traceparent": NOT_SAMPLED},
        {"KEYS": "k", "traceparent": SAMPLED, "TAGS": "A"},
        {"traceparent": "of another kind"},
    ) == [(SAMPLED, 1), (SAMPLED, 3)]


def test_no_more_are_looked_for_than_the_limit() -> None:
    """A span each: there must not be thousands."""
    assert len(found(*[{"traceparent": SAMPLED}] * 5, limit=3)) == 3


def test_a_record_that_is_not_among_the_rows_is_not_told() -> None:
    """Of several tasks each tells its own."""
    traced = {"traceparent": SAMPLED}
    assert found(traced, traced, traced, chosen=slice(1, 2)) == [(SAMPLED, 0)]
    assert found(traced, traced, chosen=slice(0)) == []
