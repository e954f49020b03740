"""Code 36: a consumer gives a message back, to receive it again later. The answer has no fields."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.remoting.field_table import BOOLEAN, INT32, INT64, TEXT, FieldTable, HeaderField


class SendBackRequest(NamedTuple):
    """The values of the request. delay_level: below 0 to the dead-letter topic, 0 by the number of tries."""

    physical_offset: int
    group: str
    delay_level: int
    origin_message_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: int | None = None  # None: the group's limit


SEND_BACK = FieldTable(
    SendBackRequest,
    HeaderField("physical_offset", "offset", INT64),
    HeaderField("group", "group", TEXT),
    HeaderField("delay_level", "delayLevel", INT32),
    HeaderField("origin_message_id", "originMsgId", TEXT),
    HeaderField("origin_topic", "originTopic", TEXT),
    HeaderField("unit_mode", "unitMode", BOOLEAN),
    HeaderField("max_reconsume_times", "maxReconsumeTimes", INT32),
)
