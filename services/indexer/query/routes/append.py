"""Appends over HTTP. The service forwards the whole request to the writer."""

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
from ..state.service_state import state_of
from ..web.route_access import GuardedRoute

Body = TypeVar("Body", bound=BaseModel)
router = APIRouter(tags=["messages"], route_class=GuardedRoute)
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}


async def read_json(request: Request, model: type[Body], limit_bytes: int) -> Body:
    """Read and parse a request's body; raise as `read_body` and `parse_json` do."""
    return parse_json(await read_body(request, limit_bytes), model)


async def read_body(request: Request, limit_bytes: int) -> bytes:
    """Return a request's body.

    Raises:
        MessageSizeExceededError: it is larger than *limit_bytes*.
    """
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > limit_bytes:
            raise MessageSizeExceededError(
                f"the request's body is larger than {limit_bytes} bytes (TIDEMARK_QUERY_MAX_REQUEST_BYTES)",
                limit_bytes=limit_bytes,
            )
    return bytes(raw)


def parse_json(raw: bytes, model: type[Body]) -> Body:
    """Parse a request's body.

    Raises:
        ArgumentIllegalError: it is not JSON.
        RequestValidationError: it does not match *model*.
    """
    try:
        return model.model_validate(orjson.loads(raw))
    except orjson.JSONDecodeError as error:
        raise ArgumentIllegalError(f"the body is not JSON: {error}", argument="body") from None
    except ValidationError as error:
        raise refusal(error, "body", model=model) from None


def described_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a body that `read_json` reads."""
    schema = {"$ref": SCHEMA_REFERENCE.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def no_arguments(request: Request) -> None:
    """Refuse any query parameter with ArgumentIllegalError."""
    for name in request.query_params:
        raise ArgumentIllegalError(f"{name}: this path has no query parameters", argument=name)


def _take_bodies(body: AppendBody, raw: bytes) -> None:
    """Store the bytes of each message's body in the message.

    Raises:
        ArgumentIllegalError: a body does not match its body_encoding; the error names the message.
    """
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
        202: {
            "model": AppendAnswer,
            "description": "Stored, but not confirmed yet: by the disk (FLUSH_DISK_TIMEOUT), or by the replicas "
            "(FLUSH_SLAVE_TIMEOUT)",
        },
        **dict.fromkeys((403, 404, 409, 412, 413, 422, 429, 503, 504, 507), _PROBLEM),
    },
)
async def append(
    request: Request,
    topic: TopicName,
    idempotency_key: Annotated[str | None, Header(max_length=1024)] = None,
) -> Response:
    """Append all messages of the request, or none.

    A repeated request with the same Idempotency-Key returns the offsets of the first one.
    A body with `body_encoding` `json` is stored exactly as sent, character by character.
    """
    state = state_of(request)
    raw = await read_body(request, state.settings.query_max_request_bytes)
    body = parse_json(raw, AppendBody)
    _take_bodies(body, raw)
    acknowledged, answer = await state.writer.append(
        topic, body, idempotency_key or "", authorization=request.headers.get("authorization")
    )
    content = {"store": state.settings.store_name, "topic": topic, **answer}
    return json_response(content, 201 if acknowledged else 202)
