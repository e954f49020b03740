"""Bodies of requests: checked by pydantic, described in OpenAPI."""

from __future__ import annotations

import binascii
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, field_validator

from .arguments import MAX_I4, MAX_I8


class AppendMessage(BaseModel):
    """One message to append."""

    model_config = ConfigDict(extra="forbid")

    body: Any = Field(description="text; base64 text with body_encoding base64; any value with body_encoding json")
    body_encoding: Literal["utf8", "base64", "json"] = "utf8"
    tag: str | None = None
    keys: list[str] = []
    properties: dict[str, str] = {}
    flag: int = Field(0, ge=-MAX_I4 - 1, le=MAX_I4)

    @field_validator("body")
    @classmethod
    def _must_be_there(cls, body: Any) -> Any:
        if body is None:
            raise ValueError("a message has a body")
        return body

    def raw_body(self) -> bytes:
        """The bytes to store; ValueError when they are not what body_encoding says."""
        if self.body_encoding == "json":
            return orjson.dumps(self.body)
        if not isinstance(self.body, str):
            raise ValueError("body is no text; body_encoding json takes any value")
        if self.body_encoding == "utf8":
            return self.body.encode()
        try:
            return binascii.a2b_base64(self.body, strict_mode=True)
        except binascii.Error as error:
            raise ValueError(f"body is no base64: {error}") from None


class AppendBody(BaseModel):
    """A batch: all of it is appended, or nothing."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"messages": [{"body": "hello", "tag": "greeting", "keys": ["k1"], "properties": {"lang": "en"}}]}
            ]
        },
    )

    messages: list[AppendMessage] = Field(min_length=1, max_length=32_767)
    queue_id: int | None = Field(
        None, ge=0, le=MAX_I4, description="absent: by routing_key, else the first key's hash, else in turn"
    )
    routing_key: str | None = None
    expected_next_offset: int | None = Field(
        None, ge=0, le=MAX_I8, description="append only if the queue's next offset is this one"
    )


class OffsetBody(BaseModel):
    """A group's offset in one queue."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"offset": 131}]})

    offset: int = Field(ge=0, le=MAX_I8, strict=True, description="the next queue offset the group wants")
