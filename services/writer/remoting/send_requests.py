"""SendRequests: messages and batches of RocketMQ's producers (10, 310, 320).

RocketMQ: SendMessageProcessor.
"""

from __future__ import annotations

import struct
from collections.abc import Coroutine
from functools import partial
from typing import Any

from tidemark.errors import PropertiesSizeExceededError
from tidemark.format.elements import encode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES
from tidemark.format.properties import UNIQ_KEY, decode_properties
from tidemark.format.wire_batch import unique_key_after
from tidemark.remoting.codes import RequestCode, ResponseCode
from tidemark.remoting.sending import (
    ANY_QUEUE,
    SendAnswer,
    SendRequest,
    join_message_ids,
    parse_send,
    send_answer_fields,
)
from tidemark.remoting_server.exchange import Exchange, Handler
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

from ..admission.append_request import Received
from ..batch.batch import Batch, PutStatus
from ..submission.batch_submitter import BatchSubmitter, Sender

_UNIQUE_KEY = f"\x02{UNIQ_KEY}\x01"  # with the end of the entry before: other names may end with UNIQ_KEY

_OUTCOMES = {
    PutStatus.PUT_OK: (ResponseCode.SUCCESS, ""),
    PutStatus.FLUSH_DISK_TIMEOUT: (ResponseCode.FLUSH_DISK_TIMEOUT, "stored, but not flushed in time"),
    PutStatus.FLUSH_SLAVE_TIMEOUT: (ResponseCode.FLUSH_SLAVE_TIMEOUT, "stored, but not confirmed by replicas in time"),
    PutStatus.SLAVE_NOT_AVAILABLE: (ResponseCode.SLAVE_NOT_AVAILABLE, "stored on the writer's disk alone"),
}


class SendRequests:
    """Converts between frames and batches. Lives on the event loop.

    max_reconsume_times: the limit of tries of a retry that does not name one.
    """

    def __init__(self, submitter: BatchSubmitter, store_host: bytes, max_reconsume_times: int) -> None:
        self._submitter = submitter
        self._store_host = store_host
        self._max_reconsume_times = max_reconsume_times
        self._unique_keys = UniqueKeys()

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        codes = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
        return dict.fromkeys(codes, self._send)

    def _send(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        frame = exchange.frame
        asked = parse_send(frame.code, frame.fields)
        is_batch = asked.batch or frame.code == RequestCode.SEND_BATCH_MESSAGE
        body = bytes(frame.body)
        received = self._received(asked, body if is_batch else self._single(asked, body), is_batch)
        sender = Sender(exchange.caller, exchange.connection.host)
        return self._submitter.submit_now(sender, received, partial(self._answer, exchange))

    def _single(self, asked: SendRequest, body: bytes) -> bytes:
        """Return a wire batch of one message, with a UNIQ_KEY if the client has set none."""
        properties = asked.properties.encode()
        if _UNIQUE_KEY not in f"\x02{asked.properties}":
            properties += unique_key_after(properties, self._unique_keys.make().encode())
        if len(properties) > MAX_PROPERTIES_SIZE_BYTES:
            raise PropertiesSizeExceededError(
                f"the message's properties are {len(properties):,} bytes, and the limit is "
                f"{MAX_PROPERTIES_SIZE_BYTES:,}",
                size=len(properties),
                limit=MAX_PROPERTIES_SIZE_BYTES,
            )
        return encode_elements([(body, properties, asked.flag)])

    def _received(self, asked: SendRequest, packed: bytes, is_batch: bool) -> Received:
        request = AppendBatchRequest(
            topic=asked.topic,
            packed=packed,
            born_timestamp_ms=asked.born_timestamp,
            sys_flag=asked.sys_flag,
            flag=asked.flag,
            reconsume_times=asked.reconsume_times,
        )
        if asked.queue_id != ANY_QUEUE:
            request.queue_id = asked.queue_id
        if is_batch:
            request.properties.update(decode_properties(asked.properties.encode()))
        limit = self._max_reconsume_times if asked.max_reconsume_times is None else asked.max_reconsume_times
        return Received(request, packed, len(packed), dead_from=limit + 1)  # the client has counted the next try

    def _answer(self, exchange: Exchange, batch: Batch) -> None:
        if batch.error is not None:
            exchange.refuse(batch.error)
            return
        appended, delay = batch.appended, batch.delay
        assert appended is not None, "answered without an error"
        raw = appended.physical_offsets
        answer = SendAnswer(
            appended.queue_id if delay is None else delay.queue_id,
            appended.queue_offset,
            join_message_ids(self._store_host, struct.unpack(f">{len(raw) // 8}q", raw)),
            batch.unique_key.decode("utf-8", "replace"),
        )
        code, remark = _OUTCOMES[batch.status]
        exchange.answer(code, send_answer_fields(answer), remark=remark)
