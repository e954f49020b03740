"""SendBackRequests: messages that a consumer gives back for another try (36). The writer stores them.

RocketMQ: AbstractSendMessageProcessor.consumerSendMsgBack.
"""

from __future__ import annotations

from tidemark.access.right import Action, on_group
from tidemark.errors import ArgumentIllegalError
from tidemark.format.message_id import encode_offset_message_id
from tidemark.format.properties import UNIQ_KEY, decode_properties
from tidemark.read.pull import PulledPart
from tidemark.remoting.codes import RequestCode
from tidemark.remoting.refusal import TOKEN
from tidemark.remoting.send_back import SEND_BACK, SendBackRequest
from tidemark.remoting_server.exchange import Exchange, Handler

from ..state.service_state import ServiceState
from ..state.writer_client import SentBackMessage
from .lookup_requests import record_for, topic_of


class SendBackRequests:
    """Passes messages on to the writer. After any refusal, clients send the message to the retry topic themselves."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back}

    async def _send_back(self, exchange: Exchange) -> None:
        asked = SEND_BACK.read(exchange.frame.fields)
        exchange.caller.require(on_group(asked.group, Action.SUB))
        part = await record_for(exchange, self._state, asked.physical_offset, Action.SUB)
        if part is None:
            return
        token = exchange.frame.fields.get(TOKEN)
        await self._state.writer.send_back(
            asked.group,
            _original(part, asked),
            delay_level=asked.delay_level,
            max_reconsume_times=asked.max_reconsume_times,
            authorization=None if token is None else f"Bearer {token}",
            origin_message_id=_offset_message_id(part),
            keep_unique_key=True,
        )
        exchange.answer()


def _original(part: PulledPart, asked: SendBackRequest) -> SentBackMessage:
    """Return the message to send back: of an inner batch, the one with the UNIQ_KEY that the client names."""
    record = part.records.rows[0]
    index = 0
    if len(part.messages) > 1:
        keys = [_unique_key(part, i) for i in range(len(part.messages))]
        if asked.origin_message_id not in keys:
            raise ArgumentIllegalError(
                f"the record at {asked.physical_offset} is an inner batch: originMsgId must be the UNIQ_KEY of one of "
                "its messages",
                argument="originMsgId",
            )
        index = keys.index(asked.origin_message_id)
    message = part.messages[index]
    inner = int(message["inner"])
    return SentBackMessage(
        topic_of(part),
        int(record["queue_id"]),
        int(message["queue_offset"]),
        int(record["physical_offset"]),
        inner - 1 if inner else None,
    )


def _offset_message_id(part: PulledPart) -> str:
    """Return the offset message id of the record in *part*, which is ORIGIN_MESSAGE_ID in RocketMQ."""
    message = part.messages[0]
    at = int(message["store_host_at"])
    store_host = part.records.buffer[at : at + int(message["store_host_size"])].tobytes()
    return encode_offset_message_id(store_host, int(part.records.rows[0]["physical_offset"]))


def _unique_key(part: PulledPart, i: int) -> str | None:
    at, length = int(part.messages["properties_at"][i]), int(part.messages["properties_length"][i])
    return decode_properties(part.records.buffer.data[at : at + length]).get(UNIQ_KEY)
