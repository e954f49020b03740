"""Where a dead letter came from."""

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
    """Never a retry topic, which would bring it to one group alone, with nothing that tells its attempts."""
    assert origin_of(properties) == origin
