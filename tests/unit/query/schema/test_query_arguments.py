"""Times, offsets and the documentation of arguments."""

from __future__ import annotations

import pytest

from services.indexer.query.schema.query_arguments import PullArguments, SearchArguments, described, parse_time


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-5", -5),
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14T23:13:20.123+01:00", 1_700_000_000_123),
        ("2023-11-14T23:13:20.123 01:00", 1_700_000_000_123),  # a `+` that was not percent-encoded
        ("1969-12-31T23:59:59Z", -1000),
    ],
)
def test_accepted_time_formats_are_parsed(text: str, expected: int) -> None:
    assert parse_time(text) == expected


@pytest.mark.parametrize("text", ["", "now", "2023-11-14T22:13:20", "1e9", "٣", "9" * 19, "2023-13-01T00:00:00Z"])
def test_invalid_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"milliseconds|offset"):
        parse_time(text)


def test_arguments_are_documented_under_their_names() -> None:
    """Aliases, descriptions and bounds are documented; lists are documented as lists."""
    parameters = {one["name"]: one for one in described(SearchArguments)["parameters"]}
    assert {"from", "to", "key", "unique_key", "limit", "cursor", "store"} <= parameters.keys()
    pull = {one["name"]: one for one in described(PullArguments)["parameters"]}
    assert pull["tag"]["schema"]["type"] == "array"
    assert "capped" in pull["wait_ms"]["description"]
    assert not any(one["required"] for one in pull.values())
