"""Names of topics: a plus sign only in retry topics, and no name longer than a record can hold."""

from __future__ import annotations

import pytest

from tidemark.errors import TopicIllegalError
from tidemark.format.topic_name import group_of, is_topic_name, require_sendable_topic, retry_topic_of, retry_topics


@pytest.mark.parametrize("name", ["orders", "%RETRY%g", "%RETRY%g+orders", "%DLQ%g", "a|b%c-_", "t" * 255])
def test_valid_topic_names_are_accepted(name: str) -> None:
    assert is_topic_name(name)


@pytest.mark.parametrize(
    "name", ["", "a+b", "%DLQ%g+a", "%RETRY%+a", "%RETRY%g+", "%RETRY%g+a+b", "a.b", "a/b", "orders\n", "t" * 256]
)
def test_invalid_topic_names_are_refused(name: str) -> None:
    assert not is_topic_name(name)
    with pytest.raises(TopicIllegalError):
        require_sendable_topic(name)


def test_the_error_names_what_is_illegal() -> None:
    with pytest.raises(TopicIllegalError, match=r"letters, digits and %\|-_; '\.' is none of them$"):
        require_sendable_topic("shop.orders")
    with pytest.raises(TopicIllegalError, match="at most 127 characters, this one has 256"):
        require_sendable_topic("t" * 256)


def test_a_member_reads_the_retry_topics_of_its_own_topics() -> None:
    assert retry_topics("g", ["a", "b"]) == ["%RETRY%g", "%RETRY%g+a", "%RETRY%g+b"]


@pytest.mark.parametrize("group", ["g", "g" * 60, "g" * 119, "g" * 120])
@pytest.mark.parametrize("topic", ["t", "t" * 60, "t" * 127])
def test_a_retry_topic_of_any_group_and_topic_is_sendable(group: str, topic: str) -> None:
    name = retry_topic_of(group, topic)
    require_sendable_topic(name)
    assert name.startswith("%RETRY%g")
    assert name != retry_topic_of(group, topic[:-1] + "u")
    assert name != retry_topic_of(group[:-1] + "h", topic)


def test_the_group_of_a_retry_topic_is_its_name_before_the_plus_sign() -> None:
    assert (group_of("%RETRY%g+orders"), group_of("%RETRY%g"), group_of("%DLQ%g"), group_of("g")) == (
        "g",
        "g",
        "g",
        None,
    )
