"""Options of the source: names, values, defaults, and conflicts."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql.types import IntegerType, StructField, StructType

from tidemark.errors import ArgumentIllegalError
from tidemark.spark.columns import KAFKA_SCHEMA
from tidemark.spark.option_values import End
from tidemark.spark.source.source_options import SourceOptions, read_options

_EXAMPLES: dict[str, tuple[str, str, Any]] = {  # option → its field, a text, and the parsed value
    "path": ("path", "/data/store", Path("/data/store")),
    "statePath": ("state_path", "/data/state", Path("/data/state")),
    "url": ("url", "http://query:8080", "http://query:8080"),
    "timeout": ("timeout", "2500ms", 2.5),
    "tlsCa": ("tls_ca", "/tls/ca.pem", "/tls/ca.pem"),
    "tlsCert": ("tls_cert", "/tls/client.pem", "/tls/client.pem"),
    "tlsKey": ("tls_key", "/tls/client.key", "/tls/client.key"),
    "token": ("token", "tidemark_x", "tidemark_x"),
    "tokenFile": ("token_file", "/run/orders.token", "/run/orders.token"),
    "subscribe": ("subscribe", "a,b", "a,b"),
    "subscribePattern": ("subscribe_pattern", "ord.*", re.compile("ord.*")),
    "assign": ("assign", '{"a": [0]}', {"a": [0]}),
    "startingOffsets": ("starting_offsets", '{"a": {"0": 23}}', {"a": {0: 23}}),
    "endingOffsets": ("ending_offsets", "latest", End.LATEST),
    "startingTimestamp": ("starting_timestamp", "1767225600000", 1_767_225_600_000),
    "endingTimestamp": ("ending_timestamp", "0", 0),
    "startingOffsetsByTimestamp": ("starting_offsets_by_timestamp", '{"a": {"0": 5}}', {"a": {0: 5}}),
    "endingOffsetsByTimestamp": ("ending_offsets_by_timestamp", '{"a": {"0": 5}}', {"a": {0: 5}}),
    "startingOffsetsByTimestampStrategy": ("starting_offsets_by_timestamp_strategy", "latest", "latest"),
    "failOnDataLoss": ("fail_on_data_loss", "false", False),
    "failOnCorruption": ("fail_on_corruption", "FALSE", False),
    "tag": ("tag", "A || B", "A || B"),
    "key": ("key", "order-1", "order-1"),
    "keyLookupLimit": ("key_lookup_limit", "0", 0),
    "bodySchema": ("body_schema", "a int", StructType([StructField("a", IntegerType())])),
    "mode": ("mode", "failfast", "FAILFAST"),
    "kafkaColumns": ("kafka_columns", "true", True),
    "includeHeaders": ("include_headers", "true", True),
    "pushFilters": ("push_filters", "true", True),
    "clockSlack": ("clock_slack", "10s", 10),
    "minPartitions": ("min_partitions", "8", 8),
    "minOffsetsPerPartition": ("min_offsets_per_partition", "1", 1),
    "maxOffsetsPerTrigger": ("max_offsets_per_trigger", "1000", 1000),
    "minOffsetsPerTrigger": ("min_offsets_per_trigger", "10", 10),
    "maxTriggerDelay": ("max_trigger_delay", "500ms", 0.5),
    "maxBytesPerPartition": ("max_bytes_per_partition", "1MiB", 1 << 20),
    "maxBytesPerTrigger": ("max_bytes_per_trigger", "512MiB", 512 << 20),
    "commitGroup": ("commit_group", "billing", "billing"),
}


def _around(name: str) -> dict[str, str]:
    """Return options to which *name* may be added."""
    around = {"path": "/store", "subscribe": "orders"}
    if name in ("subscribePattern", "assign"):
        del around["subscribe"]
    if name == "url":
        del around["path"]
    needed = {"commitGroup": {"url": "http://query:8080"}, "includeHeaders": {"kafkaColumns": "true"}}
    return around | needed.get(name, {})


def options(**given: str) -> SourceOptions:
    """Return the options of a store's files, all of `orders`, plus *given*."""
    return read_options(SourceOptions, {"path": "/store", "subscribe": "orders"} | given)


def refusal(**given: str) -> ArgumentIllegalError:
    """Return the error of `options`."""
    with pytest.raises(ArgumentIllegalError) as refused:
        options(**given)
    return refused.value


# ── names and values ────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_option_has_an_example() -> None:
    """The table above is complete."""
    assert SourceOptions.option_names() == {field: name for name, (field, *_) in _EXAMPLES.items()}


@pytest.mark.parametrize("name", _EXAMPLES)
def test_an_option_is_recognised_in_any_case(name: str) -> None:
    """Spark passes names as the user wrote them, or in lower case."""
    field, text, value = _EXAMPLES[name]
    for written in (name, name.lower(), name.upper(), name.swapcase()):
        assert getattr(read_options(SourceOptions, _around(name) | {written: text}), field) == value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("maxBytesPerTrigger", "1048576", 1 << 20),
        ("maxBytesPerTrigger", "2GiB", 2 << 30),
        ("maxBytesPerTrigger", "3MB", 3_000_000),
        ("clockSlack", "15m", 900),
        ("clockSlack", "250", 0.25),
        ("maxTriggerDelay", "10s", 10),
        ("startingOffsets", "Earliest", End.EARLIEST),
        ("startingOffsets", '{"orders": {"0": -2, "1": -1}}', {"orders": {0: -2, 1: -1}}),
        ("failOnDataLoss", "True", True),
    ],
)
def test_option_values_are_parsed(name: str, text: str, value: object) -> None:
    """The values are sizes, times, ends and offsets."""
    assert getattr(options(**{name: text}), _EXAMPLES[name][0]) == value


def test_every_option_is_described() -> None:
    """The documentation is generated from the descriptions."""
    assert [name for name, field in SourceOptions.model_fields.items() if not (field.description or "").strip()] == []


def test_the_default_options_follow_kafkas_connector() -> None:
    """Reading fails rather than losing data; start and end have no default here, because they depend on the reader."""
    given = options()
    assert (given.fail_on_data_loss, given.fail_on_corruption) == (True, True)
    assert given.starting_offsets_by_timestamp_strategy == "error"
    assert (given.timeout, given.clock_slack, given.max_trigger_delay) == (60, 600, 900)
    assert (given.starting_offsets, given.ending_offsets, given.tags, given.min_partitions) == (None,) * 4


def test_options_are_immutable() -> None:
    """Driver and tasks share them."""
    with pytest.raises(ValidationError, match="frozen"):
        options().tag = "A"  # type: ignore[misc]


def test_options_can_be_pickled() -> None:
    """This includes a regular expression and parsed JSON."""
    given = read_options(
        SourceOptions, {"path": "/store", "subscribePattern": "a.*", "startingOffsets": '{"a": {"0": 1}}'}
    )
    assert pickle.loads(pickle.dumps(given)) == given


@pytest.mark.parametrize("name", ["checkpointLocation", "checkpointlocation"])
def test_options_of_spark_itself_are_ignored(name: str) -> None:
    """Spark passes its own options together with the source's."""
    assert options(**{name: "/checkpoints"}) == options()


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("unknown", "meant"),
    [
        ("startingOffset", "startingOffsets"),
        ("subscribepatern", "subscribePattern"),
        ("starting_offsets", "startingOffsets"),
        ("failOnDataloss1", "failOnDataLoss"),
    ],
)
def test_an_unknown_option_is_refused_with_a_suggestion(unknown: str, meant: str) -> None:
    """A spelling error must not be ignored; the suggestion has the documented spelling."""
    refused = refusal(**{unknown: "earliest"})
    assert f"did you mean {meant}?" in refused.message
    assert str(refused.argument).lower() == unknown.lower()


def test_an_unknown_option_without_a_similar_name_has_no_suggestion() -> None:
    """The option is still refused."""
    assert "did you mean" not in refusal(zzz="1").message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("startingOffsets", '{"orders": {"0": 1'),
        ("startingOffsets", '{"orders": [0, 1]}'),
        ("startingOffsets", '{"orders": {"0": -3}}'),
        ("startingOffsets", "newest"),
        ("endingOffsets", "{}"),
        ("endingOffsets", '{"orders": {"zero": 1}}'),
        ("startingOffsetsByTimestamp", "latest"),
        ("endingOffsetsByTimestamp", '{"orders": {"0": 1.5}}'),
        ("startingOffsetsByTimestampStrategy", "sometimes"),
        ("startingTimestamp", "-1"),
        ("startingTimestamp", "2026-01-01"),
        ("endingTimestamp", "1.5"),
        ("failOnDataLoss", "perhaps"),
        ("failOnCorruption", ""),
        ("bodySchema", "a"),
        ("mode", "DROPMALFORMED"),
        ("clockSlack", "-1s"),
        ("maxTriggerDelay", "soon"),
        ("timeout", "-1s"),
        ("timeout", "2.5"),
        ("minPartitions", "0"),
        ("minOffsetsPerPartition", "0"),
        ("maxOffsetsPerTrigger", "0"),
        ("minOffsetsPerTrigger", "-1"),
        ("maxBytesPerPartition", "0"),
        ("maxBytesPerTrigger", "lots"),
        ("maxBytesPerTrigger", "-5"),
    ],
)
def test_an_invalid_value_is_refused_with_its_options_name(name: str, text: str) -> None:
    """Message and fact have the documented spelling, whatever the user's spelling."""
    refused = refusal(**{name.upper(): text})
    assert refused.argument == name
    assert refused.message.startswith(f"option {name}: ")


@pytest.mark.parametrize(
    ("name", "text"), [("assign", '{"orders": [-1]}'), ("assign", "[0]"), ("subscribePattern", "(")]
)
def test_an_invalid_topic_selection_is_refused_with_its_options_name(name: str, text: str) -> None:
    """The values are invalid queue ids, or no regular expression."""
    with pytest.raises(ArgumentIllegalError) as refused:
        read_options(SourceOptions, {"path": "/store", name: text})
    assert refused.value.argument == name


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"subscribe": "a", "subscribePattern": "a"},
        {"subscribe": "a", "assign": '{"a": [0]}'},
        {"subscribePattern": "a", "assign": '{"a": [0]}'},
        {"subscribe": "a", "subscribePattern": "a", "assign": '{"a": [0]}'},
    ],
    ids=["none", "subscribe and pattern", "subscribe and assign", "pattern and assign", "all"],
)
def test_topics_must_be_selected_in_exactly_one_way(given: dict[str, str]) -> None:
    """Kafka's connector requires the same."""
    with pytest.raises(ArgumentIllegalError, match="one of subscribe, subscribePattern and assign"):
        read_options(SourceOptions, {"path": "/store"} | given)


@pytest.mark.parametrize(
    "given",
    [{}, {"path": "/store", "url": "http://query:8080"}, {"commitGroup": "g"}],
    ids=["neither", "both", "neither, with a group"],
)
def test_options_that_do_not_name_one_log_are_refused(given: dict[str, str]) -> None:
    """The place is files or a query service."""
    with pytest.raises(ArgumentIllegalError, match="url"):
        read_options(SourceOptions, {"subscribe": "orders"} | given)


def test_a_group_needs_the_query_service() -> None:
    """With files it may be given for the group alone."""
    assert "commitGroup requires `url`" in refusal(commitGroup="g").message
    both = options(commitGroup="g", url="http://query:8080")
    assert (both.path, both.url) == (Path("/store"), "http://query:8080")


def test_a_trigger_minimum_above_its_maximum_is_refused() -> None:
    """Minimum and maximum may be equal."""
    message = refusal(minOffsetsPerTrigger="11", maxOffsetsPerTrigger="10").message
    assert "minOffsetsPerTrigger" in message
    assert "maxOffsetsPerTrigger" in message
    assert options(minOffsetsPerTrigger="10", maxOffsetsPerTrigger="10").min_offsets_per_trigger == 10


def test_kafkas_columns_exclude_those_of_bodies_and_are_needed_for_headers() -> None:
    """The error names the alternative."""
    assert "with from_json" in refusal(kafkaColumns="true", bodySchema="a int").message
    assert "includeHeaders requires kafkaColumns=true" in refusal(includeHeaders="true").message
    assert "headers" not in options(kafkaColumns="true").columns.names
    assert options(kafkaColumns="true", includeHeaders="true").columns == KAFKA_SCHEMA


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_an_empty_subscription_is_refused(text: str) -> None:
    """An empty subscription would read nothing."""
    assert "subscribe" in refusal(subscribe=text).message


# ── derived values ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_topics_are_separated_by_commas() -> None:
    """They are sorted and unique, without surrounding blanks."""
    assert options(subscribe=" b ,a,, b").topics == ["a", "b"]
    assert read_options(SourceOptions, {"path": "/store", "subscribePattern": "a"}).topics == []


@pytest.mark.parametrize(
    ("text", "tags"), [("A", {"A"}), ("A || B", {"A", "B"}), ("A||B", {"A", "B"}), ("*", None), ("", None)]
)
def test_the_tag_option_is_parsed_as_a_subscription(text: str, tags: set[str] | None) -> None:
    """`*` and an empty subscription mean all messages."""
    assert options(tag=text).tags == tags


@pytest.mark.parametrize(
    ("given", "asks"),
    [
        ({}, False),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, False),
        ({"startingOffsets": '{"orders": {"0": 5}}'}, True),
        ({"endingOffsets": '{"orders": {"0": 5}}'}, True),
        ({"startingTimestamp": "5"}, False),
    ],
    ids=["nothing", "ends", "start", "end", "time"],
)
def test_only_numeric_offsets_need_to_be_settled(given: dict[str, str], *, asks: bool) -> None:
    """A named end needs no wait."""
    assert options(**given).asks_for_offsets is asks


@pytest.mark.parametrize(("name", "text"), [("startingOffsets", "latest"), ("endingOffsets", "earliest")])
def test_a_batch_from_latest_or_to_earliest_is_refused(name: str, text: str) -> None:
    """Such a batch would always be empty."""
    with pytest.raises(ArgumentIllegalError, match="batch") as refused:
        options(**{name: text}).require_batch()
    assert refused.value.argument == name


def test_other_batch_starts_and_ends_are_accepted() -> None:
    """The options are returned unchanged."""
    given = options(startingOffsets="earliest", endingOffsets="latest")
    assert given.require_batch() is given


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("endingOffsets", "latest"),
        ("endingOffsets", '{"orders": {"0": 5}}'),
        ("endingTimestamp", "0"),
        ("endingOffsetsByTimestamp", '{"orders": {"0": 5}}'),
    ],
)
def test_a_stream_with_an_end_is_refused(name: str, text: str) -> None:
    """Not even the present end is allowed."""
    with pytest.raises(ArgumentIllegalError, match="stream") as refused:
        options(**{name: text}).require_stream()
    assert refused.value.argument == name


def test_a_stream_accepts_any_start() -> None:
    """The options are returned unchanged."""
    given = options(startingOffsets="latest", startingTimestamp="5")
    assert given.require_stream() is given
