"""Sends: codes 10 (fields by name), 310 and 320 (fields of one letter, which name the same values)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidemark.format.message_id import encode_offset_message_id
from tidemark.remoting.codes import RequestCode
from tidemark.remoting.field_table import BOOLEAN, INT32, INT64, TEXT, FieldTable, HeaderField

ANY_QUEUE = -1  # SendRequest.queue_id: the writer chooses one
DEFAULT_TOPIC = "TBW102"


class SendRequest(NamedTuple):
    """The values of a send request. The message's body, or the batch, is the frame's body."""

    producer_group: str
    topic: str
    queue_id: int
    sys_flag: int
    born_timestamp: int  # epoch milliseconds
    flag: int
    default_topic: str = DEFAULT_TOPIC
    default_topic_queue_nums: int = 4
    properties: str = ""  # docs/format.md §2
    reconsume_times: int = 0
    unit_mode: bool = False
    max_reconsume_times: int | None = None  # None: the group's limit
    batch: bool = False
    broker_name: str | None = None  # not read by a broker


_ROWS = (
    # attribute, field of 10, field of 310 and 320, kind
    ("producer_group", "producerGroup", "a", TEXT),
    ("topic", "topic", "b", TEXT),
    ("queue_id", "queueId", "e", INT32),
    ("sys_flag", "sysFlag", "f", INT32),
    ("born_timestamp", "bornTimestamp", "g", INT64),
    ("flag", "flag", "h", INT32),
    ("default_topic", "defaultTopic", "c", TEXT),
    ("default_topic_queue_nums", "defaultTopicQueueNums", "d", INT32),
    ("properties", "properties", "i", TEXT),
    ("reconsume_times", "reconsumeTimes", "j", INT32),
    ("unit_mode", "unitMode", "k", BOOLEAN),
    ("max_reconsume_times", "maxReconsumeTimes", "l", INT32),
    ("batch", "batch", "m", BOOLEAN),
    ("broker_name", "bname", "n", TEXT),
)
_NAMED = FieldTable(SendRequest, *(HeaderField(attribute, name, kind) for attribute, name, _, kind in _ROWS))
_LETTERED = FieldTable(
    SendRequest,
    *(HeaderField(attribute, letter, kind, f"{name} ({letter})") for attribute, name, letter, kind in _ROWS),
)
_TABLES: dict[int, FieldTable[SendRequest]] = {
    RequestCode.SEND_MESSAGE: _NAMED,
    RequestCode.SEND_MESSAGE_V2: _LETTERED,
    RequestCode.SEND_BATCH_MESSAGE: _LETTERED,
}


class SendAnswer(NamedTuple):
    """The values of the answer to a stored message or batch."""

    queue_id: int
    queue_offset: int  # of the first message
    message_id: str  # offset message ids, joined by commas
    transaction_id: str | None = None  # the message's UNIQ_KEY
    region: str = "DefaultRegion"
    trace_on: bool = False  # True makes a client with tracing send messages to RMQ_SYS_TRACE_TOPIC

    @property
    def message_ids(self) -> list[str]:
        """The offset message id of each message."""
        return self.message_id.split(",")


_ANSWER = FieldTable(
    SendAnswer,
    HeaderField("queue_id", "queueId", INT32),
    HeaderField("queue_offset", "queueOffset", INT64),
    HeaderField("message_id", "msgId", TEXT),
    HeaderField("transaction_id", "transactionId", TEXT),
    HeaderField("region", "MSG_REGION", TEXT),
    HeaderField("trace_on", "TRACE_ON", BOOLEAN),
)


def parse_send(code: int, fields: Mapping[str, str]) -> SendRequest:
    """Return the values of a send request with *code* 10, 310 or 320.

    Raises:
        FieldIllegalError: a required field is missing, or a value is illegal.
    """
    return _TABLES[code].read(fields)


def to_fields(code: int, request: SendRequest) -> dict[str, str]:
    """Return the fields of *request* for *code* 10, 310 or 320."""
    return _TABLES[code].write(request)


def parse_send_answer(fields: Mapping[str, str]) -> SendAnswer:
    """Return the values of an answer. Raises FieldIllegalError."""
    return _ANSWER.read(fields)


def send_answer_fields(answer: SendAnswer) -> dict[str, str]:
    """Return the fields of *answer*."""
    return _ANSWER.write(answer)


def join_message_ids(store_host: bytes, physical_offsets: Iterable[int]) -> str:
    """Return `SendAnswer.message_id` of messages stored at *physical_offsets*. *store_host*: 8 or 20 bytes."""
    return ",".join(encode_offset_message_id(store_host, offset) for offset in physical_offsets)
