"""Names of topics, and of groups in them."""

from __future__ import annotations

import pytest

from services.writer.topics.topic_names import require_topic_name, usual_queues
from tidemark.errors import TopicIllegalError
from tidemark.format.topic_name import group_of


@pytest.mark.parametrize("prefix", ["%RETRY%", "%DLQ%"])
def test_a_group_name_has_1_to_120_characters(prefix: str) -> None:
    """This holds in its retry topic and in its dead-letter topic."""
    require_topic_name(prefix + "g" * 120)
    for group in ("", "g" * 121, "g/h"):
        with pytest.raises(TopicIllegalError):
            require_topic_name(prefix + group)


def test_a_groups_own_topics_have_one_queue() -> None:
    """Other topics have the default number."""
    assert [usual_queues(topic, 4) for topic in ("%RETRY%g", "%DLQ%g", "orders", "a%RETRY%g")] == [1, 1, 4, 4]
    assert [group_of(topic) for topic in ("%RETRY%g", "%DLQ%h", "orders")] == ["g", "h", None]
