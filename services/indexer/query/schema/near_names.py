"""Words for an unknown field: the nearest known one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

_SYNONYMS = {
    "key": "keys",
    "name": "topic",
    "tags": "tag",
    "partition": "queue_id",
    "queue": "queue_id",
    "value": "body",
    "payload": "body",
    "headers": "properties",
    "limit": "max_messages",
    "max": "max_messages",
    "encoding": "body_encoding",
    "timeout_ms": "wait_ms",
}


def unknown_field(model: type[BaseModel], place: Sequence[int | str]) -> str:
    """Return the message for the unknown field at *place*, the path to it in a document of *model*."""
    *outer, name = place
    known = _fields_at(model, outer)
    synonym = _SYNONYMS.get(str(name))
    close = [synonym] if synonym in known else get_close_matches(str(name), known, n=1, cutoff=0.6)
    if close:
        return f"there is no field {name}; did you mean {close[0]}?"
    return f"there is no field {name}; there are {', '.join(sorted(known))}" if known else f"there is no field {name}"


def _fields_at(model: type[BaseModel], outer: Iterable[int | str]) -> set[str]:
    """Return the names of the fields of the model at the path *outer*."""
    for part in outer:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        if field is not None:
            inner = _model_in(field.annotation)
            if inner is None:
                return set()
            model = inner
    return {field.alias or name for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model in an annotation such as `list[Model] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for one in get_args(annotation) if (found := _model_in(one)) is not None), None)
