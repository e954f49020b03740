from __future__ import annotations

from typing import Any

import pytest

from services.writer.admission.admission import Admission, SizeLimits
from services.writer.batch.batch import Batch
from services.writer.topics.topic_table import WritableTopic, topic_of
from tests.builders import BORN_HOST, STORE_HOST, properties, wire_batch
from tidemark.errors import (
    ArgumentIllegalError,
    BatchDelayError,
    BatchEmptyError,
    InnerBatchIllegalError,
    MessageSizeExceededError,
    PropertiesIllegalError,
    StoreError,
)
from tidemark.format.elements import decode_elements
from tidemark.format.primitives import queue_of_key
from tidemark.format.properties import decode_properties
from tidemark.store.originals.topics import TopicConfig
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

MAX_SIZE = 1000
LIMITS = SizeLimits(MAX_SIZE, segment_size=1 << 20)


def topic(name: str = "orders", *, queues: int = 4, batch: bool = False) -> WritableTopic:
    return topic_of(TopicConfig(name, queues, queues, attributes={"queue.type": "BatchCQ"} if batch else {}))


def admit(
    *messages: tuple[bytes, dict[str, str]],
    to: WritableTopic | None = None,
    admission: Admission | None = None,
    limits: SizeLimits = LIMITS,
    **request: Any,
) -> Batch:
    """Admit a batch of (body, properties)."""
    wire = wire_batch(*((body, properties(named), 0) for body, named in messages))
    return (admission or Admission(limits, STORE_HOST)).admit(
        AppendBatchRequest(topic="orders", **request),
        to or topic(),
        wire,
        born_host=BORN_HOST,
        answer=lambda _: None,
    )


def keys_of(batch: Batch) -> list[str]:
    """Return the UNIQ_KEY of each message as it is stored, "" where there is none."""
    elements = list(decode_elements(batch.wire.tobytes()))
    texts = [element.properties for element in elements]
    texts[0] += batch.first_extra.tobytes()
    return [decode_properties(text).get("UNIQ_KEY", "") for text in texts]


def test_a_queue_id_in_the_request_selects_the_queue() -> None:
    assert admit((b"x", {"KEYS": "k"}), queue_id=2).key.queue_id == 2


@pytest.mark.parametrize("request_key", ["", "routing"])
def test_a_key_chooses_the_queue(request_key: str) -> None:
    """The request's routing key, else the first key of the first message."""
    batch = admit((b"x", {"KEYS": "first second"}), routing_key=request_key)
    assert batch.key.queue_id == queue_of_key(request_key or "first", 4)


def test_batches_without_a_key_are_distributed_round_robin() -> None:
    admission = Admission(LIMITS, STORE_HOST)
    assert [admit((b"x", {}), admission=admission).key.queue_id for _ in range(6)] == [0, 1, 2, 3, 0, 1]


def test_each_message_gets_a_unique_key_from_the_request_id() -> None:
    batch = admit((b"a", {}), (b"b", {}), (b"c", {}), request_id="id")
    keys = keys_of(batch)
    assert keys[0] == "id" == batch.unique_key.decode()
    assert len(set(keys)) == 3
    assert keys == keys_of(admit((b"a", {}), (b"b", {}), (b"c", {}), request_id="id")), "a repeat has the same keys"


def test_unique_keys_of_the_messages_are_kept() -> None:
    assert keys_of(admit((b"a", {"UNIQ_KEY": "one"}), (b"b", {"UNIQ_KEY": "two"}), request_id="id")) == ["one", "two"]


def test_an_inner_batch_has_its_number_and_key_in_its_record() -> None:
    batch = admit((b"a", {}), (b"b", {}), to=topic(batch=True), request_id="id")
    assert batch.inner_properties is not None
    named = decode_properties(batch.inner_properties)
    assert (named["INNER_NUM"], named["UNIQ_KEY"]) == ("2", "id")
    assert batch.first_extra.size == 0


NOT_WAITING = {"WAIT": "false"}


@pytest.mark.parametrize(
    ("waits", "expected"), [(({}, {}), True), ((NOT_WAITING, NOT_WAITING), False), (({"WAIT": "x"},), False)]
)
def test_messages_with_wait_false_do_not_wait_for_the_flush(waits: tuple[dict[str, str], ...], expected: bool) -> None:
    assert admit(*((b"x", named) for named in waits)).waits_for_flush is expected


def test_a_single_delayed_message_goes_to_the_queue_of_its_level() -> None:
    batch = admit((b"x", {"DELAY": "3"}), queue_id=1)
    assert (batch.key.topic, batch.key.queue_id) == ("SCHEDULE_TOPIC_XXXX", 2)
    assert batch.delay is not None
    assert (batch.delay.level, batch.delay.topic, batch.delay.queue_id) == (3, "orders", 1)


REFUSALS: dict[str, tuple[type[StoreError], list[tuple[bytes, dict[str, str]]], dict[str, Any]]] = {
    "no message": (BatchEmptyError, [], {}),
    "a message without a body": (BatchEmptyError, [(b"x", {}), (b"", {})], {}),
    "a body above the limit": (MessageSizeExceededError, [(b"x" * (MAX_SIZE + 1), {})], {}),
    "a batch above the limit": (MessageSizeExceededError, [(b"x" * (MAX_SIZE // 2), {})] * 2, {}),
    "a delay in a batch": (BatchDelayError, [(b"x", {}), (b"x", {"DELAY": "1"})], {}),
    "a message that is a batch": (InnerBatchIllegalError, [(b"x", {"INNER_NUM": "2"})], {}),
    "a checksum of the client": (PropertiesIllegalError, [(b"x", {"__CRC32#": "0123456789"})], {}),
    "a tag that no filter can name": (PropertiesIllegalError, [(b"x", {"TAGS": "A||B"})], {}),
    "messages that differ in WAIT": (ArgumentIllegalError, [(b"x", {}), (b"x", {"WAIT": "false"})], {}),
    "a place for a delayed message": (
        ArgumentIllegalError,
        [(b"x", {"DELAY": "1"})],
        {"queue_id": 0, "expected_next_offset": 0},
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_invalid_batches_are_refused(case: str) -> None:
    error, messages, request = REFUSALS[case]
    with pytest.raises(error):
        admit(*messages, **request)


def test_a_body_as_large_as_the_limit_is_admitted() -> None:
    """The limit counts the body of a single message, and not its wire form."""
    assert admit((b"x" * MAX_SIZE, {})).count == 1


def test_records_that_do_not_fit_into_a_segment_are_refused() -> None:
    with pytest.raises(MessageSizeExceededError) as refused:
        admit((b"x" * 900, {}), limits=SizeLimits(MAX_SIZE, 950))
    assert refused.value.facts["limit"] == 950 - 8


def test_a_wrong_inner_num_property_is_refused() -> None:
    with pytest.raises(InnerBatchIllegalError) as refused:
        admit((b"a", {}), to=topic(batch=True), properties={"INNER_NUM": "5"})
    assert (refused.value.facts["claimed"], refused.value.facts["count"]) == ("5", 1)
