"""The original topic of a dead letter."""

from __future__ import annotations

import pytest

from tidemark.cli.reading.dead_letters import origin_of


@pytest.mark.parametrize(
    ("properties", "origin"),
    [
        ({"RETRY_TOPIC": "orders", "DLQ_ORIGIN_TOPIC": "%RETRY%billing"}, "orders"),
        ({"DLQ_ORIGIN_TOPIC": "orders"}, "orders"),
        ({"DLQ_ORIGIN_TOPIC": "%RETRY%billing"}, None),
        ({}, None),
    ],
)
def test_the_origin_is_the_topic_it_was_first_sent_to(properties: dict[str, str], origin: str | None) -> None:
    """It is never a retry topic, which would deliver the message to one group only, without its attempts."""
    assert origin_of(properties) == origin
