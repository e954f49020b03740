"""Values of messages: objects of the program as bodies, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

Serializer = Callable[[Any], bytes | str]
Deserializer = Callable[[bytes], Any]


def json_body(value: object) -> bytes:
    """Return *value* as JSON in UTF-8: also dataclasses, times (RFC 3339), UUIDs, enums and pydantic's models.

    TypeError: the value, or one in it, has no JSON form.
    """
    return orjson.dumps(value, default=_of_model)


def _of_model(value: Any) -> Any:
    """Return the JSON form of a model of pydantic, which the client does not need to import."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no JSON form")


def model_body(model: object) -> str:
    """Return the JSON of an instance of a pydantic model."""
    dump = getattr(model, "model_dump_json", None)
    if dump is None or isinstance(model, type):
        raise TypeError(f"model must be an instance of a pydantic model, not {model!r}; other values: value=…")
    text: str = dump()
    return text


def deserializer_of(model: type[Any] | None, value_deserializer: Deserializer | None) -> Deserializer | None:
    """Return the function for `ReceivedMessage.value`; None if neither is given.

    raises ValueError if both are given; TypeError if *model* is not a pydantic model
    """
    if model is None:
        return value_deserializer
    if value_deserializer is not None:
        raise ValueError("model and value_deserializer are both given: give one of them")
    validate: Deserializer | None = getattr(model, "model_validate_json", None)
    if validate is None:
        raise TypeError(f"model must be a class of pydantic models, not {model!r}; otherwise give value_deserializer")
    return validate
