"""Right: the resource that a topic's name maps to."""

from __future__ import annotations

import pytest

from tidemark.access.right import Action, ResourceKind, on_topic


@pytest.mark.parametrize("name", ["%RETRY%billing", "%RETRY%billing+orders", "%DLQ%billing"])
def test_retry_and_dead_letter_topics_need_the_right_of_their_group(name: str) -> None:
    right = on_topic(name, Action.PUB)
    assert (right.kind, right.name, right.actions) == (ResourceKind.GROUP, "billing", (Action.PUB, Action.SUB))


def test_other_topics_need_a_topic_right() -> None:
    assert on_topic("orders", Action.SUB).name == "orders"
