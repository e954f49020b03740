"""Trace contexts in record bytes."""

from __future__ import annotations

from tests.builders import buffer_of_records, properties
from tidemark.format.check import Checker
from tidemark.tracing.traced_records import traced_records

SAMPLED = f"00-{'ab' * 16}-{'cd' * 8}-01"
NOT_SAMPLED = f"00-{'ab' * 16}-{'cd' * 8}-00"


def found(*carried: dict[str, str], limit: int = 100, chosen: slice = slice(None)) -> list[tuple[str, int]]:
    """Return the contexts of contiguous records with these properties; *chosen* selects the rows."""
    buffer, places, _ = buffer_of_records({"properties": properties(one)} for one in carried)
    rows = Checker().check(buffer, base_offset=0).requests
    assert len(rows) == len(carried)
    return [(one.traceparent, one.row) for one in traced_records(buffer, places[chosen], rows[chosen], limit=limit)]


def test_the_records_of_sampled_messages_are_found() -> None:
    """The property may be anywhere among others; an unsampled context is skipped."""
    assert found(
        {},
        {"traceparent": SAMPLED},
        {"traceparent": NOT_SAMPLED},
        {"KEYS": "k", "traceparent": SAMPLED, "TAGS": "A"},
        {"traceparent": "of another kind"},
    ) == [(SAMPLED, 1), (SAMPLED, 3)]


def test_traced_records_are_limited() -> None:
    """Each gives a span: there must not be thousands."""
    assert len(found(*[{"traceparent": SAMPLED}] * 5, limit=3)) == 3


def test_traced_records_outside_the_rows_are_not_returned() -> None:
    """Each of several tasks reports only its own records."""
    traced = {"traceparent": SAMPLED}
    assert found(traced, traced, traced, chosen=slice(1, 2)) == [(SAMPLED, 0)]
    assert found(traced, traced, chosen=slice(0)) == []
