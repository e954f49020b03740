"""Parsing of store times on a command line."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import typer

from tidemark.cli.reading.store_times import parse_time

_NOW_MS = 1_769_860_923_456  # 2026-01-31T12:02:03.456Z
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop the clock, and set a time zone that has another day than UTC."""
    with monkeypatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: _NOW_MS * 1_000_000 + 789)
        patched.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("text", "epoch_ms"),
    [
        ("now", _NOW_MS),
        ("-90s", _NOW_MS - 90_000),
        ("-30m", _NOW_MS - 30 * _MINUTE_MS),
        ("-1h", _NOW_MS - _HOUR_MS),
        ("@-1h", _NOW_MS - _HOUR_MS),
        ("-1h30m", _NOW_MS - 90 * _MINUTE_MS),
        ("-2d", _NOW_MS - 2 * _DAY_MS),
        ("-1w", _NOW_MS - 7 * _DAY_MS),
        ("-999999w", 0),
        ("today", 1_769_817_600_000),
        ("yesterday", 1_769_731_200_000),
        ("2026-01-31", 1_769_817_600_000),
        ("0001-01-01", 0),
        ("2026-01-31T02:00:00+02:00", 1_769_817_600_000),
        ("1769817600000ms", 1_769_817_600_000),
    ],
)
def test_a_time_is_parsed_in_utc(text: str, epoch_ms: int) -> None:
    """Days begin at 00:00 UTC, whatever the time zone of this machine."""
    assert parse_time(text, option="--at") == epoch_ms


@pytest.mark.parametrize(
    "text", ["1h", "-1", "--1h", "-1h-30m", "-1y", "noon", "2026-01-31T12:00", "20260131", "-1.5h"]
)
def test_an_invalid_time_is_a_usage_error(text: str) -> None:
    """The error names the value."""
    with pytest.raises(typer.BadParameter, match=text.replace(".", "[.]")):
        parse_time(text, option="--at")
