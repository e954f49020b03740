"""Pull requests and their answers."""

from __future__ import annotations

import pytest

from tidemark.errors import FieldIllegalError
from tidemark.remoting.pulling import (
    PULL_ANSWER,
    PULL_OFFSETS,
    PULL_REQUEST,
    PullMessageAnswer,
    PullMessageRequest,
    parse_tags,
    tag_hashes,
)

FIELDS = {
    "consumerGroup": "g",
    "topic": "T",
    "queueId": "3",
    "queueOffset": "32",
    "maxMsgNums": "10",
    "sysFlag": "7",
    "commitOffset": "4",
    "suspendTimeoutMillis": "15000",
    "subscription": "A || B",
    "subVersion": "1795639207946",
    "expressionType": "TAG",
    "maxMsgBytes": "2147483647",
}
REQUEST = PullMessageRequest("g", "T", 3, 32, 10, 7, 4, 15_000, "A || B", 1795639207946, "TAG", 2147483647)


def test_both_directions_have_the_fields_of_a_pull() -> None:
    assert PULL_REQUEST.read({**FIELDS, "bname": "broker-a", "ReqT": "0"}) == REQUEST
    assert PULL_REQUEST.write(REQUEST) == FIELDS


@pytest.mark.parametrize("field", ["consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums"])
def test_missing_required_field_is_named(field: str) -> None:
    with pytest.raises(FieldIllegalError, match=f"^{field} is missing"):
        PULL_REQUEST.read({name: value for name, value in FIELDS.items() if name != field})


@pytest.mark.parametrize(
    ("sys_flag", "commits", "suspends", "subscribes"),
    [
        (0, False, False, False),
        (1, True, False, False),
        (2, False, True, False),
        (4, False, False, True),
        (8, False, False, False),
        (22, False, True, True),
        (-1, True, True, True),
    ],
)
def test_bits_of_the_sys_flag(sys_flag: int, commits: bool, suspends: bool, subscribes: bool) -> None:
    found = PULL_REQUEST.read({**FIELDS, "sysFlag": str(sys_flag)})
    assert (found.commits_offset, found.may_suspend, found.has_subscription) == (commits, suspends, subscribes)


def test_answer_has_every_required_field() -> None:
    fields = PULL_ANSWER.write(PullMessageAnswer(345, 0, 346))
    assert fields == {
        "nextBeginOffset": "345",
        "minOffset": "0",
        "maxOffset": "346",
        "suggestWhichBrokerId": "0",
        "topicSysFlag": "0",
        "groupSysFlag": "0",
    }
    assert PULL_ANSWER.read(fields) == PullMessageAnswer(345, 0, 346)
    for field in ("nextBeginOffset", "minOffset", "maxOffset"):
        with pytest.raises(FieldIllegalError, match=f"^{field} is missing"):
            PULL_ANSWER.read({name: value for name, value in fields.items() if name != field})


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        ("*", None),
        ("", None),
        ("  * ", None),
        ("TagA", {"TagA"}),
        ("TagA||TagB", {"TagA", "TagB"}),
        (" TagA ||  TagB || ", {"TagA", "TagB"}),
        ("a b", {"a b"}),
        ("a|b", {"a|b"}),
    ],
)
def test_tag_expression_is_split_and_trimmed(expression: str, tags: set[str] | None) -> None:
    assert parse_tags(expression) == tags


@pytest.mark.parametrize("expression", ["||", " || ", "|| ||"])
def test_expression_without_a_tag_is_refused(expression: str) -> None:
    with pytest.raises(FieldIllegalError, match=r"^subscription is "):
        parse_tags(expression)


def test_hash_of_a_tag_is_javas() -> None:
    """The hashes of TagA and TagG are those of the captured heartbeats."""
    assert tag_hashes("TagA || TagG") == frozenset((2598919, 2598925))
    assert tag_hashes("*") is None


def test_consumers_read_the_offsets_of_a_whole_answer() -> None:
    fields = PULL_ANSWER.write(PullMessageAnswer(7, 3, 9))
    assert PULL_OFFSETS.read(fields) == (7, 3, 9)
    for name in ("nextBeginOffset", "minOffset", "maxOffset"):
        with pytest.raises(FieldIllegalError):
            PULL_OFFSETS.read({**fields, name: "x"})


def test_a_field_is_found_by_its_attribute() -> None:
    assert PULL_REQUEST.name_of("queue_offset") == "queueOffset"
    assert PULL_REQUEST.parsers["queue_offset"]("-12") == -12
    assert "topic" not in PULL_REQUEST.parsers, "every text is legal"
