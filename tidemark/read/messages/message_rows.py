"""Messages as dicts for JSON, with the names of the REST API.

By default TAGS, KEYS and UNIQ_KEY are separate fields (tag, keys, message_id) and not in properties. A message without
a UNIQ_KEY has its offset message id as message_id, with the index in the batch for a message of an inner batch. With
RocketMQ's semantics all properties are included, and elements of inner batches have no offset message id.
"""

from __future__ import annotations

import functools
from typing import Any

from tidemark.format.compression import decompress
from tidemark.format.dispatch_request import fields_of
from tidemark.format.host import decode_host
from tidemark.format.message import MESSAGE
from tidemark.format.properties import KEYS, TAGS, UNIQ_KEY, WAIT, decode_properties, split_keys
from tidemark.format.sys_flag import INNER_BATCH_FLAGS, SysFlag
from tidemark.read.messages.body import BodyEncoding, BodyRoom, encode_body
from tidemark.read.pull import PulledPart
from tidemark.read.records import Records

_NAMES = (
    "queue_offset",
    "physical_offset",
    "born_timestamp",
    "store_timestamp",
    "record",
    "inner",
    "flag",
    "sys_flag",
    "reconsume_times",
    "body_crc",
    "body_at",
    "body_length",
    "properties_at",
    "properties_length",
    "born_host_at",
    "born_host_size",
    "store_host_at",
    "store_host_size",
)
_FIELDS = fields_of(MESSAGE, *_NAMES)
_COMPRESSED = int(SysFlag.COMPRESSED)  # an int, because & of an IntFlag would cost more than everything else

Row = dict[str, Any]


@functools.lru_cache(maxsize=4096)
def host_text(raw: bytes) -> str:
    """Format 8 or 20 bytes as ``127.0.0.1:8081``."""
    return str(decode_host(raw))


def message_rows(
    part: PulledPart, encoding: BodyEncoding, *, as_broker: bool = False, room: BodyRoom | None = None
) -> list[Row]:
    """Return one dict per message of *part*, in order. room: limit of the response for decompressed bodies."""
    view = part.records.buffer.data
    rows: list[Row] = []
    for (
        queue_offset,
        physical_offset,
        born_timestamp,
        store_timestamp,
        record,
        inner,
        flag,
        sys_flag,
        reconsume_times,
        body_crc,
        body_at,
        body_length,
        properties_at,
        properties_length,
        born_host_at,
        born_host_size,
        store_host_at,
        store_host_size,
    ) in map(_FIELDS, part.messages.tolist()):
        store_host = bytes(view[store_host_at : store_host_at + store_host_size])
        properties = decode_properties(view[properties_at : properties_at + properties_length])
        body: bytes | memoryview = view[body_at : body_at + body_length]
        flags, crc = sys_flag, body_crc
        if flags & _COMPRESSED:
            original = (decompress if room is None else room.decompress)(bytes(body), sys_flag)
            if original is not None:
                body = original
                flags &= ~_COMPRESSED
        value, encoding_name = encode_body(body, encoding)
        offset_msg_id: str | None = f"{store_host.hex().upper()}{physical_offset:016X}"
        keys = properties.get(KEYS)
        message_id = properties.get(UNIQ_KEY)
        if message_id is None and not (as_broker and inner):
            message_id = f"{offset_msg_id}-{inner - 1}" if inner else offset_msg_id
        tag = properties.get(TAGS)
        if as_broker:
            if inner:
                offset_msg_id, crc = None, 0
                properties[WAIT] = _wait_of(part.records, record)
        else:
            properties.pop(TAGS, None)
            properties.pop(KEYS, None)
            properties.pop(UNIQ_KEY, None)
            if inner:
                flags &= ~INNER_BATCH_FLAGS
        rows.append(
            {
                "queue_offset": queue_offset,
                "physical_offset": physical_offset,
                "message_id": message_id,
                "offset_msg_id": offset_msg_id,
                "store_timestamp_ms": store_timestamp,
                "born_timestamp_ms": born_timestamp,
                "tag": tag,
                "keys": split_keys(keys) if keys else [],
                "properties": properties,
                "flag": flag,
                "sys_flag": flags,
                "reconsume_times": reconsume_times,
                "born_host": host_text(bytes(view[born_host_at : born_host_at + born_host_size])),
                "store_host": host_text(store_host),
                "body_crc": crc,
                "body": value,
                "body_encoding": encoding_name,
            }
        )
    if as_broker:
        _add_broker_fields(part, rows)
    return rows


def _add_broker_fields(part: PulledPart, rows: list[Row]) -> None:
    sizes = part.messages["record_size"].tolist()
    prepared = part.messages["prepared_transaction_offset"].tolist()
    for row, size, offset in zip(rows, sizes, prepared, strict=True):
        row["store_size"] = size
        row["prepared_transaction_offset"] = offset


def _wait_of(records: Records, record: int) -> str:
    """Return the value that a client sets as an element's WAIT: the wrapper's (docs/format.md §14)."""
    row = records.rows[record]
    at = int(row["properties_at"])
    wrapper = decode_properties(records.buffer.data[at : at + int(row["properties_length"])])
    return str(wrapper.get(WAIT, "true").lower() == "true").lower()
