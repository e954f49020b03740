"""The limit of retries: an append to a retry topic that reached its limit goes to the group's dead letters instead.

RocketMQ: SendMessageProcessor.handleRetryAndDLQ. Any client may send retries, so the service enforces the limit itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidemark.errors import ArgumentIllegalError, BatchMalformedError, PropertiesIllegalError
from tidemark.format.elements import Element, decode_elements, encode_elements
from tidemark.format.properties import DELAY, MAX_RECONSUME_TIMES, decode_properties
from tidemark.format.topic_name import DEAD_LETTER_PREFIX, RETRY_PREFIX, group_of
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

from .append_request import Received
from .request_payload import wire_of

_INT32 = re.compile(r"[+-]?[0-9]{1,10}")


def limit_of_tries(properties: Mapping[str, str], default: int) -> int:
    """Return the reconsume times from which a message is a dead letter: MAX_RECONSUME_TIMES, or *default*.

    In RocketMQ a negative number selects the default.
    Raises PropertiesIllegalError if the property is not a 32-bit integer.
    """
    text = properties.get(MAX_RECONSUME_TIMES)
    if text is None:
        return default
    if not _INT32.fullmatch(text) or not -(1 << 31) <= int(text) < 1 << 31:
        raise PropertiesIllegalError(
            f"{MAX_RECONSUME_TIMES}={text[:64]} is not a 32-bit integer: give the number of tries, or leave it out",
            name=MAX_RECONSUME_TIMES,
        )
    return int(text) if int(text) >= 0 else default


def redirect(received: Received, *, max_body_size: int, max_reconsume_times: int) -> Received:
    """Return *received*, or the append to %DLQ%group that replaces it if its reconsume times have reached the limit.

    The copy has no delay and no queue id, because the dead letters are another topic.
    Raises ArgumentIllegalError for expected_next_offset, which is an offset in the retry topic.
    """
    request = received.request
    if not request.topic.startswith(RETRY_PREFIX) or request.reconsume_times <= 0:
        return received
    wire = wire_of(request, max_body_size=max_body_size) if received.packed is None else received.packed
    try:
        (element,) = decode_elements(wire)
    except (BatchMalformedError, ValueError):  # not a single message: admission rejects it with its own reason
        return received
    dead_from = received.dead_from
    if dead_from is None:
        properties = {**request.properties, **decode_properties(element.properties)}
        dead_from = limit_of_tries(properties, max_reconsume_times)
    if request.reconsume_times < dead_from:
        return received
    if request.HasField("expected_next_offset"):
        raise ArgumentIllegalError(
            "expected_next_offset cannot be combined with a retry that has reached its limit of tries, because the "
            "message is stored in the dead letters: leave it out",
            argument="expected_next_offset",
        )
    return _dead_letter(received, request, element)


def _dead_letter(received: Received, request: AppendBatchRequest, element: Element) -> Received:
    copy = AppendBatchRequest()
    copy.CopyFrom(request)
    copy.topic = f"{DEAD_LETTER_PREFIX}{group_of(request.topic)}"
    copy.ClearField("queue_id")
    copy.properties.pop(DELAY, None)
    packed = encode_elements([element._replace(properties=_without_delay(element.properties))])
    copy.packed = packed
    return received._replace(request=copy, packed=packed)


def _without_delay(properties: bytes) -> bytes:
    """Remove DELAY from the encoded properties and keep every other byte."""
    prefix = DELAY.encode() + b"\x01"
    return b"\x02".join(part for part in properties.split(b"\x02") if not part.startswith(prefix))
