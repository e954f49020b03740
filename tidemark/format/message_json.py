"""Messages as JSON text, written by compiled loops into buffers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidemark.format.dispatch_request import U8Array
from tidemark.format.kernels import message_json as kernel
from tidemark.format.message import MessageArray, NewBuffer
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES

_MOST_ENTRIES = MAX_PROPERTIES_SIZE_BYTES // 4 + 1
ROOM_BYTES = 8 << 20


class JsonRun(NamedTuple):
    """JSON of some messages."""

    text: U8Array
    end: int  # index of the first message that is not included
    is_rare: bool  # stopped because these loops do not support that message: see `put_messages`


def put_messages(
    buffer: U8Array,
    messages: MessageArray,
    first: int,
    *,
    is_text: bool,
    terminator: bytes,
    new_buffer: NewBuffer,
    room_bytes: int = ROOM_BYTES,
) -> JsonRun:
    """Return messages[first:] as JSON objects, each followed by *terminator*, as many as fit into one new buffer.

    is_text     UTF-8 bodies as text, others in base64; False: all in base64
    room_bytes  size of the new buffer, unless the first message needs more
    """
    room = int(kernel.room_for(messages[first]))
    out = new_buffer(max(room, min(room_bytes, 6 * len(buffer) + 1024 * (len(messages) - first))))
    scratch = np.empty((4, _MOST_ENTRIES), np.int32)
    end, size, why = kernel.put_messages(buffer, messages, first, is_text, terminator[0], out, scratch)
    return JsonRun(out[:size], end, why == kernel.RARE)
