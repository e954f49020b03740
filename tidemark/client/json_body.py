"""JSON bodies of `send_json`."""

from __future__ import annotations

from typing import Any

import orjson


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
