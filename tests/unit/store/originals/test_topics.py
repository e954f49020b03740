"""topics.json as RocketMQ and Tidemark write it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tidemark.errors import CorruptStoreError, TopicAttributeError
from tidemark.store.originals.topics import (
    TopicConfig,
    TopicsFile,
    attributes_to_alter,
    attributes_to_create,
    load_config,
    load_topics,
    loads_lenient,
    save_topics,
)
from tidemark.store.storage import DiskStorage

ORDERS = TopicConfig("Orders", 4, 8)
BATCHES = TopicConfig("Batches", 2, 2, 7, {"queue.type": "BatchCQ"}, True, "MULTI_TAG", 3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "topics.json"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_saved_topics_are_loaded_unchanged(path: Path) -> None:
    """Every field has the name that a broker reads; keys are in order."""
    save_topics(path, {"Orders": ORDERS, "Batches": BATCHES}, DiskStorage(), counter=3)
    assert load_topics(path) == {"Batches": BATCHES, "Orders": ORDERS}
    content = json.loads(path.read_text())
    assert content["dataVersion"]["counter"] == 3
    assert list(content["topicConfigTable"]) == ["Batches", "Orders"]
    assert content["topicConfigTable"]["Batches"] == {
        "attributes": {"queue.type": "BatchCQ"},
        "order": True,
        "perm": 7,
        "readQueueNums": 2,
        "topicFilterType": "MULTI_TAG",
        "topicName": "Batches",
        "topicSysFlag": 3,
        "writeQueueNums": 2,
    }


def test_a_topic_config_has_its_queue_count_and_type() -> None:
    """The number of queues is the greater of both numbers; the attribute marks a BatchCQ."""
    assert (ORDERS.queues, ORDERS.is_batch, BATCHES.is_batch) == (8, False, True)


def test_a_topic_of_a_4x_broker_has_no_attributes(path: Path) -> None:
    """Missing fields have RocketMQ's class defaults: 16 queues, read and write."""
    written(path, '{"dataVersion":{"counter":1},"topicConfigTable":{"T":{"topicName":"T"}}}')
    assert load_topics(path) == {"T": TopicConfig("T", 16, 16, 6)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{0:5280,1:5312}", {"0": 5280, "1": 5312}),
        ('{"offsetTable":{"T@g":{0:1,\n\t-1 : 2},"U":{}}}', {"offsetTable": {"T@g": {"0": 1, "-1": 2}, "U": {}}}),
        ('{"a":"{0:1,2:3}","b\\"{4:5":6,7:"8:"}', {"a": "{0:1,2:3}", 'b"{4:5': 6, "7": "8:"}),
        ('{"a":[1,2,{3:4}]}', {"a": [1, 2, {"3": 4}]}),
        ('{"strict": true}', {"strict": True}),
    ],
)
def test_unquoted_integer_keys_are_parsed(text: str, value: object) -> None:
    """fastjson writes maps with integer keys in this way; strings with the same content are not changed."""
    assert loads_lenient(text.encode()) == value


@pytest.mark.parametrize("broken", [None, "", "  \n", "{", '{"topicConfigTable":{"Other"'])
def test_the_bak_file_replaces_a_missing_empty_or_invalid_topics_file(path: Path, broken: str | None) -> None:
    """RocketMQ loads the file in the same way (docs/format.md §9)."""
    save_topics(path, {"Orders": ORDERS}, DiskStorage(), counter=1)
    path.rename(path.with_name("topics.json.bak"))
    if broken is not None:
        path.write_text(broken)
    assert load_topics(path) == {"Orders": ORDERS}
    assert TopicsFile(path).topics() == {"Orders": ORDERS}


def test_a_store_without_topics_files_has_no_topics(path: Path) -> None:
    """A new store has no topics."""
    assert (load_config(path), load_topics(path), TopicsFile(path).topics()) == (None, {}, {})


@pytest.mark.parametrize(
    "content", ["{", "\xff", '{"topicConfigTable":[1]}', "[]x", '{"topicConfigTable":{"T":5}}', "[1]"]
)
def test_an_unreadable_topics_file_is_damage(path: Path, content: str) -> None:
    """A file that is no table of topics differs from an empty table."""
    written(path, content)
    with pytest.raises(CorruptStoreError) as refused:
        load_topics(path)
    assert refused.value.facts["path"] == str(path)


def test_a_topics_reader_sees_changes_and_reads_bak_during_a_rewrite(path: Path) -> None:
    """The file is read again after a change; while a broker rewrites it, `.bak` has the previous content."""
    save_topics(path, {"Orders": ORDERS}, DiskStorage(), counter=1)
    reader = TopicsFile(path)
    first = reader.topics()
    assert reader.topics() is first
    save_topics(path, {"Orders": ORDERS, "Batches": BATCHES}, DiskStorage(), counter=2)
    assert reader.topics().keys() == {"Orders", "Batches"}
    os.replace(path, path.with_name("topics.json.bak"))
    assert reader.topics().keys() == {"Orders", "Batches"}


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ({}, {}),
        ({"+queue.type": "BatchCQ"}, {"queue.type": "BatchCQ"}),
        (
            {"queue.type": "SimpleCQ", "+cleanup.policy": "DELETE"},
            {"queue.type": "SimpleCQ", "cleanup.policy": "DELETE"},
        ),
        ({"+message.type": "NORMAL", "+reserve.time": "-1"}, {"message.type": "NORMAL", "reserve.time": "-1"}),
        ({"message.type": "UNSPECIFIED"}, {"message.type": "UNSPECIFIED"}),
    ],
)
def test_attributes_are_stored_without_sign(asked: dict[str, str], stored: dict[str, str]) -> None:
    """A request has signs, the store has none."""
    assert attributes_to_create(asked) == stored


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"+color": "red"}, "unsupported key: color"),
        ({"++queue.type": "BatchCQ"}, "kv string format wrong."),
        ({"+": "x"}, "kv string format wrong."),
        (
            {"-queue.type": "BatchCQ"},
            "only add attribute is supported while creating topic. key: queue.type",
        ),
        ({"+queue.type": "LmqCQ"}, "value is not in set: [SimpleCQ, BatchCQ]"),
        ({"+cleanup.policy": "delete"}, "value is not in set: [DELETE, COMPACTION]"),
        ({"+queue.type": "BatchCQ", "queue.type": "BatchCQ"}, "alter duplication key. key: queue.type"),
    ],
)
def test_invalid_attributes_are_refused_with_rocketmqs_message(asked: dict[str, str], text: str) -> None:
    """The messages are those of docs/format.md §9."""
    with pytest.raises(TopicAttributeError) as refused:
        attributes_to_create(asked)
    assert refused.value.message == text


STORED = {"queue.type": "BatchCQ", "message.type": "NORMAL"}


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ({}, STORED),
        ({"+message.type": "UNSPECIFIED"}, STORED | {"message.type": "UNSPECIFIED"}),
        ({"+reserve.time": "-1", "-message.type": ""}, {"queue.type": "BatchCQ", "reserve.time": "-1"}),
    ],
)
def test_altered_attributes_are_set_or_removed_by_their_sign(asked: dict[str, str], stored: dict[str, str]) -> None:
    """Other attributes stay."""
    assert attributes_to_alter(STORED, asked) == stored


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"+queue.type": "SimpleCQ"}, "attempt to update an unchangeable attribute. key: queue.type"),
        ({"-queue.type": ""}, "attempt to update an unchangeable attribute. key: queue.type"),
        ({"+cleanup.policy": "COMPACTION"}, "attempt to update an unchangeable attribute. key: cleanup.policy"),
        ({"-reserve.time": ""}, "attempt to delete a nonexistent key: reserve.time"),
        ({"+message.type": "FIFO", "-message.type": ""}, "alter duplication key. key: message.type"),
        ({"*message.type": "FIFO"}, "wrong format key: message.type"),
        ({"++message.type": "FIFO"}, "kv string format wrong."),
        ({"": "FIFO"}, "kv string format wrong."),
        ({"+color": "red"}, "unsupported key: color"),
        ({"+message.type": "fifo"}, "value is not in set: [UNSPECIFIED, NORMAL, FIFO, DELAY, TRANSACTION, MIXED]"),
        ({"+reserve.time": "-2"}, "value is not in range(-1, 9223372036854775807)"),
    ],
)
def test_invalid_alterations_are_refused_with_rocketmqs_message(asked: dict[str, str], text: str) -> None:
    """The messages are those of AttributeUtil.alterCurrentAttributes, docs/format.md §9."""
    with pytest.raises(TopicAttributeError) as refused:
        attributes_to_alter(STORED, asked)
    assert refused.value.message == text


NOT_HONOURED = [
    ("message.type", "FIFO"),
    ("message.type", "DELAY"),
    ("message.type", "TRANSACTION"),
    ("message.type", "MIXED"),
    ("reserve.time", "0"),
    ("reserve.time", "86400000"),
    ("reserve.time", "9223372036854775807"),
]


@pytest.mark.parametrize(("name", "value"), [*NOT_HONOURED, ("cleanup.policy", "COMPACTION")])
def test_an_unsupported_attribute_value_is_refused_at_create(name: str, value: str) -> None:
    """RocketMQ would compact, order or expire by it; the error lists the supported values."""
    for signed in (name, f"+{name}"):
        with pytest.raises(TopicAttributeError, match="is not supported") as refused:
            attributes_to_create({signed: value})
        assert (refused.value.name, refused.value.value) == (name, value)


@pytest.mark.parametrize(("name", "value"), NOT_HONOURED)
def test_an_unsupported_attribute_value_is_refused_at_alter(name: str, value: str) -> None:
    """An attribute of that kind that a broker has set can still be removed, and does not prevent other changes."""
    with pytest.raises(TopicAttributeError, match="is not supported"):
        attributes_to_alter(STORED, {f"+{name}": value})
    stored_by_a_broker = {**STORED, name: value}
    assert name not in attributes_to_alter(stored_by_a_broker, {f"-{name}": ""})
    if name != "message.type":
        assert attributes_to_alter(stored_by_a_broker, {"+message.type": "NORMAL"}) == stored_by_a_broker


@pytest.mark.parametrize("name", ["lite.bind.topic", "priority", "priority.factor", "queue.typo", "MESSAGE.TYPE"])
def test_an_unknown_attribute_is_refused(name: str) -> None:
    """This holds at create and at alter."""
    with pytest.raises(TopicAttributeError, match=f"unsupported key: {name}"):
        attributes_to_create({f"+{name}": "1"})
    with pytest.raises(TopicAttributeError, match=f"unsupported key: {name}"):
        attributes_to_alter(STORED, {f"+{name}": "1"})


@pytest.mark.parametrize("value", ["-2", "9223372036854775808", "x", "", "٣", "1.5"])
def test_an_out_of_range_reserve_time_is_refused(value: str) -> None:
    """This is the attribute's range."""
    with pytest.raises(TopicAttributeError):
        attributes_to_create({"+reserve.time": value})
