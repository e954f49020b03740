"""Answers of the application against the models that describe them in OpenAPI."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


def require_described(model: type[BaseModel], answer: dict[str, Any]) -> None:
    """Fail unless *answer* has values of the types of *model*, and on each level exactly its names."""
    described = model.model_validate(answer, strict=True).model_dump()
    assert described == answer
