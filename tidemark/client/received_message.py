"""ReceivedMessage: a consumed message with its position; PulledPage: the messages that one pull returned."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

import orjson

from tidemark.client.answers import MessageAnswer, PullAnswer, SkippedAnswer
from tidemark.client.values import Deserializer

JSON = "application/json"


class TopicQueue(NamedTuple):
    """One queue of a topic."""

    topic: str
    queue_id: int


class StoreQueue(TopicQueue):
    """One queue of a topic in one of the several stores that a consumer reads.

    store  URL of the store's query service, as in the consumer's `url`
    """

    store: str

    def __new__(cls, topic: str, queue_id: int, store: str) -> Self:
        """Return the queue."""
        queue = super().__new__(cls, topic, queue_id)
        queue.store = store
        return queue

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreQueue) and (*self, self.store) == (*other, other.store)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((*self, self.store))

    def __repr__(self) -> str:
        return f"StoreQueue(topic={self.topic!r}, queue_id={self.queue_id}, store={self.store!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return StoreQueue, (*self, self.store)


def queue_of_store(queue: tuple[str, int], store: str) -> TopicQueue:
    """Return *queue* as one of *store*, which is empty for a consumer of a single store."""
    return StoreQueue(*queue, store) if store else TopicQueue(*queue)


class ReceivedMessage:
    """One message, decompressed and extracted from its inner batch. Equal messages have equal attributes.

    store          URL of the query service that it was read from, if its consumer reads several stores; else empty
    message_id     its UNIQ_KEY; without one, its offset message id, followed by -N for message N of an inner batch
    offset_msg_id  offset message id of its record; all messages of an inner batch share it
    properties     without TAGS, KEYS and UNIQ_KEY, which are in tag, keys and message_id
    *_ms           epoch milliseconds
    """

    __slots__ = (
        "_deserializer",
        "_store",
        "body",
        "born_host",
        "born_timestamp_ms",
        "flag",
        "keys",
        "message_id",
        "offset_msg_id",
        "physical_offset",
        "properties",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "store_host",
        "store_timestamp_ms",
        "sys_flag",
        "tag",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        body: bytes,
        tag: str | None,
        keys: tuple[str, ...],
        properties: Mapping[str, str],
        message_id: str | None,
        offset_msg_id: str | None,
        physical_offset: int,
        store_timestamp_ms: int,
        born_timestamp_ms: int,
        flag: int,
        sys_flag: int,
        reconsume_times: int,
        born_host: str,
        store_host: str,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.body = body
        self.tag = tag
        self.keys = keys
        self.properties = properties
        self.message_id = message_id
        self.offset_msg_id = offset_msg_id
        self.physical_offset = physical_offset
        self.store_timestamp_ms = store_timestamp_ms
        self.born_timestamp_ms = born_timestamp_ms
        self.flag = flag
        self.sys_flag = sys_flag
        self.reconsume_times = reconsume_times
        self.born_host = born_host
        self.store_host = store_host

    @property
    def queue(self) -> TopicQueue:
        """Return the queue that the message was read from: a `StoreQueue` if its consumer reads several stores."""
        return queue_of_store((self.topic, self.queue_id), self.store)

    @property
    def store(self) -> str:
        """Return the URL of the query service that the message was read from, if there are several; else ""."""
        store: str = getattr(self, "_store", "")
        return store

    @property
    def key(self) -> str | None:
        """Return the first key, which has chosen the queue; None without keys."""
        return self.keys[0] if self.keys else None

    @property
    def stored_at(self) -> datetime:
        """Return the time at which the writer stored the message, in UTC, to the millisecond."""
        seconds, milliseconds = divmod(self.store_timestamp_ms, 1000)
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=milliseconds * 1000)

    def text(self) -> str:
        """Return the body as text; raise UnicodeDecodeError if it is not UTF-8."""
        return self.body.decode()

    def json(self) -> Any:
        """Return the body's JSON value; raise ValueError if it is not JSON."""
        return orjson.loads(self.body)

    @property
    def value(self) -> Any:
        """Return the body as the consumer's `model` or `value_deserializer` reads it.

        raises the exception of that function, for a model pydantic's ValidationError; ValueError if the consumer has
        neither
        """
        deserializer: Deserializer | None = getattr(self, "_deserializer", None)
        if deserializer is None:
            raise ValueError("value needs a Consumer with model or value_deserializer")
        return deserializer(self.body)

    def read_by(self, deserializer: Deserializer | None) -> ReceivedMessage:
        """Let *deserializer* read `value`; return this message."""
        self._deserializer = deserializer
        return self

    def read_from(self, store: str) -> ReceivedMessage:
        """Note the *store* from which the message was read; return this message."""
        self._store = store
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return {name: getattr(self, name) for name in FIELDS}

    def replace(self, **changes: Any) -> ReceivedMessage:
        """Return a copy with other values for some attributes."""
        copy = ReceivedMessage(**{**self.as_dict(), **changes}).read_from(self.store)
        return copy.read_by(getattr(self, "_deserializer", None))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReceivedMessage) and self.store == other.store and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash((self.topic, self.queue_id, self.queue_offset))

    def __repr__(self) -> str:
        return f"ReceivedMessage({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ReceivedMessage, tuple(self.as_dict().values()), (None, {"_store": self.store})

    @classmethod
    def of(cls, queue: TopicQueue, message: MessageAnswer) -> ReceivedMessage:
        """Return the ReceivedMessage for *message* of a JSON answer with base64 bodies."""
        return cls(
            *queue,
            message["queue_offset"],
            binascii.a2b_base64(message["body"]),
            message["tag"],
            tuple(message["keys"]),
            message["properties"],
            message["message_id"],
            message["offset_msg_id"],
            message["physical_offset"],
            message["store_timestamp_ms"],
            message["born_timestamp_ms"],
            message["flag"],
            message["sys_flag"],
            message["reconsume_times"],
            message["born_host"],
            message["store_host"],
        )


FIELDS = tuple(ReceivedMessage.__init__.__annotations__)[:-1]  # the attributes, in the order of the constructor


class PulledPage(NamedTuple):
    """The result of one pull. skipped: the first twenty records that failed their check."""

    queue: TopicQueue
    status: str
    messages: list[ReceivedMessage]
    requested_offset: int
    next_offset: int
    min_offset: int
    max_offset: int
    skipped: list[SkippedAnswer]


def pulled_page(queue: TopicQueue, page: PullAnswer) -> PulledPage:
    """Return the PulledPage for the JSON answer *page*, which has base64 bodies."""
    return PulledPage(
        queue,
        page["status"],
        [ReceivedMessage.of(queue, message) for message in page["messages"]],
        page["requested_offset"],
        page["next_offset"],
        page["min_offset"],
        page["max_offset"],
        page["skipped"],
    )
