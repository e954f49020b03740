"""Tags codes, delivery times and subscriptions."""

from __future__ import annotations

import pytest

from tidemark.format.tags import DELAY_LEVELS_MS, delivery_time, parse_tag_expression, tags_code


def test_empty_tags_have_code_0() -> None:
    """This holds for None and the empty text; every other text has its hash."""
    assert (tags_code(None), tags_code(""), tags_code("TagA")) == (0, 0, 2598919)
    assert tags_code("polygenelubricants") == -2147483648


def test_delay_levels_equal_the_rocketmq_default() -> None:
    """There are eighteen levels, in the form of RocketMQ's setting."""
    units = {"s": 1, "m": 60, "h": 3600}
    text = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    assert [1000 * int(level[:-1]) * units[level[-1]] for level in text.split()] == list(DELAY_LEVELS_MS)


def test_a_delay_level_above_18_counts_as_18() -> None:
    """The delivery time is the store time plus the level's delay."""
    assert (delivery_time(1, 5), delivery_time(18, 5), delivery_time(99, 5)) == (1005, 7_200_005, 7_200_005)


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        (None, None),
        ("", None),
        ("  ", None),
        ("*", None),
        (" * ", None),
        ("A", {"A"}),
        ("A||B", {"A", "B"}),
        (" A || B ||A", {"A", "B"}),
        ("A|B", {"A|B"}),
        ("A || ", {"A"}),
        ("||", None),
    ],
)
def test_a_tag_expression_is_split_at_double_bars(expression: str | None, tags: set[str] | None) -> None:
    """Whitespace is trimmed; a star or nothing means all (docs/format.md §14)."""
    assert parse_tag_expression(expression) == tags
