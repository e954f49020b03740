"""Exchange: one request of a client, with the ways to answer it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import orjson

from tidemark.access.guard import Caller
from tidemark.errors import StoreError
from tidemark.remoting.codes import ResponseCode
from tidemark.remoting.frame import ONE_WAY, Buffer, Frame, answer_to
from tidemark.remoting.framing import encode, encode_parts
from tidemark.remoting.prepared_head import encode_success
from tidemark.remoting.refusal import FACTS, REASON
from tidemark.status import status_of

from .connection import Connection

_MOST_REMARK = 1_000  # characters; a client's own names, of up to 16 MiB, are parts of remarks and facts
_MOST_FACTS = 4_096  # bytes; larger facts are left out


class Exchange:
    """One request. It must be answered exactly once, even if it is one way: then no bytes are sent."""

    __slots__ = ("caller", "connection", "frame")

    def __init__(self, connection: Connection, frame: Frame, caller: Caller) -> None:
        self.connection = connection
        self.frame = frame
        self.caller = caller

    def answer(
        self,
        code: int = ResponseCode.SUCCESS,
        fields: dict[str, str] | None = None,
        body: Buffer = b"",
        *,
        remark: str = "",
    ) -> None:
        """Answer the request."""
        frame = self.frame
        data: tuple[Buffer, ...] = ()
        if not frame.flag & ONE_WAY:
            if code or fields or remark:
                data = (encode(answer_to(frame, code, remark[:_MOST_REMARK], fields, body)),)
            else:
                data = (encode_success(frame.opaque, body),)
        self.connection.finish(frame.code, code, data)

    def answer_parts(self, code: int, fields: dict[str, str], parts: Iterable[Buffer], *, remark: str = "") -> None:
        """Answer the request with a body of several buffers, which are not joined."""
        frame = self.frame
        data = () if frame.is_one_way else encode_parts(answer_to(frame, code, remark, fields), parts)
        self.connection.finish(frame.code, code, data)

    def refuse(self, error: StoreError) -> None:
        """Answer with the code of *error*, its message as the remark, and its reason and facts as fields."""
        remark = " ".join(error.message[: 2 * _MOST_REMARK].split())
        self.answer(ResponseCode[status_of(error).response_code], refusal_fields(error), remark=remark)


def refusal_fields(error: StoreError) -> dict[str, str]:
    """Return the fields with the reason and the facts of *error*."""
    facts = {name: value for name, value in error.facts.items() if value is not None}
    fields = {REASON: status_of(error).reason}
    if facts:
        text = orjson.dumps(facts, default=str).decode()
        if len(text) <= _MOST_FACTS:
            fields[FACTS] = text
    return fields


Handler = Callable[[Exchange], Coroutine[Any, Any, None] | None]
"""Answers a request, at once or in the returned coroutine. A StoreError that it raises is the answer."""
