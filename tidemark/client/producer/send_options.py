"""Options of a send other than topic and body, defined once for all ways of sending."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from tidemark.client.message import Message
from tidemark.client.message_queue import MessageQueue
from tidemark.client.unknown_keywords import require_keywords
from tidemark.client.values import Serializer, json_body, model_body
from tidemark.errors import PropertiesIllegalError
from tidemark.format.properties import require_writable
from tidemark.format.text_rules import require_key

MAX_REQUEST_ID_LENGTH = 255  # the writer's limit

Selector = Callable[[Sequence[MessageQueue], Message], MessageQueue]


class MessageParts(TypedDict, total=False):
    """Fields of a `Message` for a send without one.

    model  in place of a body: an instance of a pydantic model, sent as its JSON
    value  in place of a body: an object, of which the producer's `value_serializer` makes one; by default its JSON
    key    one key, which comes before those in `keys`
    """

    model: object
    value: object
    key: str | None
    keys: Sequence[str]
    tag: str | None
    properties: Mapping[str, str] | None
    delay_level: int
    flag: int


class PlaceOptions(TypedDict, total=False):
    """Queue, condition and identity of a send.

    queue_id              a queue, or its number if only one writer has the topic; default: by the hash of the first
                          key, or round robin without a key
    selector              function of the topic's queues and the (first) message that returns one of the queues
    expected_next_offset  store only if this is the queue's next offset; needs queue_id
    request_id            default: generated. A repeat with the same id and content is stored once. The messages of a
                          batch get it as UNIQ_KEY: ``request_id``, ``request_id#1``, and so on
    reconsume_times       number of failed deliveries before this send; stored with the message
    """

    queue_id: int | MessageQueue | None
    selector: Selector | None
    expected_next_offset: int | None
    request_id: str | None
    reconsume_times: int


class SendOptions(MessageParts, PlaceOptions, total=False):
    """All options for a send of one message."""


MESSAGE_PARTS = frozenset(MessageParts.__annotations__)
_PLACE_NAMES = PlaceOptions.__required_keys__ | PlaceOptions.__optional_keys__
_SEND_NAMES = SendOptions.__required_keys__ | SendOptions.__optional_keys__


def require_send_options(options: SendOptions, *, call: str) -> None:
    """Raise TypeError for a keyword that a send of one message does not take."""
    if not options.keys() <= _SEND_NAMES:
        require_keywords(options, _SEND_NAMES, call=call)


def require_place_options(options: PlaceOptions, *, call: str) -> None:
    """Raise TypeError for a keyword that a send of a batch does not take."""
    if not options.keys() <= _PLACE_NAMES:
        require_keywords(options, _PLACE_NAMES, call=call)


def request_id_of(options: PlaceOptions | SendOptions) -> str | None:
    """Return the request id in *options*; None without one. Raises TypeError, PropertiesIllegalError."""
    request_id = options.get("request_id")
    if request_id is None or request_id == "":
        return None
    if not isinstance(request_id, str):
        raise TypeError(f"request_id must be a str, not {request_id!r} of type {type(request_id).__name__}")
    require_writable({"request_id": request_id})
    if len(request_id) > MAX_REQUEST_ID_LENGTH or (not request_id.isascii() and _has_surrogate(request_id)):
        raise PropertiesIllegalError(
            f"request_id has {len(request_id)} characters; it must have at most {MAX_REQUEST_ID_LENGTH}, and no "
            "unpaired surrogate",
            name="request_id",
            limit=MAX_REQUEST_ID_LENGTH,
        )
    return request_id


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def message_of(
    message: Message | str, body: bytes | str | None, options: SendOptions, serializer: Serializer = json_body
) -> Message:
    """Return *message* if it is a Message; otherwise build one from topic, body and options."""
    has_object = "model" in options or "value" in options
    if isinstance(message, Message):
        if body is not None or has_object or any(options.get(name) for name in MESSAGE_PARTS):
            raise ValueError("a Message brings its own body, keys, tag, properties, delay_level and flag: omit these")
        return message
    if has_object:
        body = _body_of(body, options, serializer)
    if body is None:
        raise ValueError("a send needs a Message, or a topic and a body; the body is missing")
    if not options:
        return Message(message, body)
    keys, key = options.get("keys", ()), options.get("key")
    if key is not None and key != "":
        keys = (require_key(key), *([keys] if isinstance(keys, str) else keys or ()))
    properties = options.get("properties")
    return Message(
        message,
        body,
        tag=options.get("tag"),
        keys=keys,
        properties={} if properties is None else properties,
        delay_level=options.get("delay_level", 0),
        flag=options.get("flag", 0),
    )


def _body_of(body: bytes | str | None, options: SendOptions, serializer: Serializer) -> bytes | str:
    """Return the body that `model` or `value` describes."""
    if body is not None or ("model" in options and "value" in options):
        raise ValueError("a send needs one of body, model and value, not several")
    return model_body(options["model"]) if "model" in options else serializer(options["value"])
