"""Right: the resource that a topic's name maps to."""

from __future__ import annotations

import pytest

from tidemark.access.right import Action, ResourceKind, on_topic


@pytest.mark.parametrize("name", ["%RETRY%billing", "%RETRY%billing+orders", "%DLQ%billing"])
def test_topics_of_a_group_need_the_right_to_consume_for_it(name: str) -> None:
    right = on_topic(name, Action.PUB)
    assert (right.kind, right.name, right.actions) == (ResourceKind.GROUP, "billing", (Action.PUB, Action.SUB))


def test_other_topics_need_a_right_of_their_own() -> None:
    assert on_topic("orders", Action.SUB).name == "orders"
