"""Appending over HTTP: forwarded to the writer, whole."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import orjson
from fastapi import APIRouter, Depends, Header
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from tidemark.errors import ArgumentIllegalError, MessageSizeExceededError

from ..pull.pull_response import json_response
from ..schema.query_arguments import SCHEMA_REFERENCE, TopicName, refusal
from ..schema.request_bodies import AppendBody
from ..schema.responses import AppendAnswer, ProblemAnswer
from ..state.service_state import facade_of
from ..web.route_access import GuardedRoute

Body = TypeVar("Body", bound=BaseModel)
router = APIRouter(tags=["messages"], route_class=GuardedRoute)
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}


async def read_json(request: Request, model: type[Body], limit_bytes: int) -> Body:
    """Read and parse a request's body; raise as `read_body` and `parse_json` do."""
    return parse_json(await read_body(request, limit_bytes), model)


async def read_body(request: Request, limit_bytes: int) -> bytes:
    """Return a request's body; MessageSizeExceededError beyond *limit_bytes*."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > limit_bytes:
            raise MessageSizeExceededError("the request's body is too large", limit_bytes=limit_bytes)
    return bytes(raw)


def parse_json(raw: bytes, model: type[Body]) -> Body:
    """Parse a request's body; ArgumentIllegalError for one that is not JSON or does not fit the model."""
    try:
        return model.model_validate(orjson.loads(raw))
    except orjson.JSONDecodeError as error:
        raise ArgumentIllegalError(f"the body is no JSON: {error}", argument="body") from None
    except ValidationError as error:
        raise refusal(error, "body") from None


def described_body(model: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says of a body that `read_json` reads."""
    schema = {"$ref": SCHEMA_REFERENCE.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def no_arguments(request: Request) -> None:
    """Nothing may stand behind the path's question mark."""
    for name in request.query_params:
        raise ArgumentIllegalError(f"unknown argument {name}", argument=name)


def _take_bodies(body: AppendBody, raw: bytes) -> None:
    """Let each message know its bytes; ArgumentIllegalError names the message whose body is not as it says."""
    try:
        body.keep_json_texts(raw.decode())
    except ValueError as error:
        raise ArgumentIllegalError(f"messages: {error}", argument="messages") from None
    for i, message in enumerate(body.messages):
        try:
            message.raw_body()
        except ValueError as error:
            raise ArgumentIllegalError(f"messages.{i}: {error}", argument=f"messages.{i}.body") from None


@router.post(
    "/v1/topics/{topic}/messages",
    summary="Append",
    status_code=201,
    response_model=AppendAnswer,
    dependencies=[Depends(no_arguments)],
    openapi_extra=described_body(AppendBody),
    responses={
        202: {"model": AppendAnswer, "description": "Stored; its flush is not confirmed yet (FLUSH_DISK_TIMEOUT)"},
        **dict.fromkeys((403, 404, 409, 412, 413, 422, 429, 503, 504, 507), _PROBLEM),
    },
)
async def append(
    request: Request,
    topic: TopicName,
    idempotency_key: Annotated[str | None, Header(max_length=1024)] = None,
) -> Response:
    """All messages or none. A repeat with the same Idempotency-Key is answered with the first one's offsets.

    A body with `body_encoding` `json` is stored exactly as sent, character by character.
    """
    facade = facade_of(request)
    raw = await read_body(request, facade.settings.query_max_request_bytes)
    body = parse_json(raw, AppendBody)
    _take_bodies(body, raw)
    acknowledged, answer = await facade.writer.append(
        topic, body, idempotency_key or "", authorization=request.headers.get("authorization")
    )
    content = {"store": facade.settings.store_name, "topic": topic, **answer}
    return json_response(content, 201 if acknowledged else 202)
