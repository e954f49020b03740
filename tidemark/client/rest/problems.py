"""Converts problems (RFC 9457) of the query service into the exceptions of `tidemark.errors`, by their reason."""

from __future__ import annotations

from typing import Any

import orjson

from tidemark.client.rest.connections import Answer
from tidemark.errors import StoreError
from tidemark.status import BY_REASON

Json = dict[str, Any]
_PROBLEM_MEMBERS = frozenset(
    {"type", "title", "status", "detail", "instance", "reason", "message"}
)  # the members of RFC 9457, and those of Tidemark


def require_success(answer: Answer) -> Answer:
    """Return *answer*, or raise the exception for its problem+json."""
    if not answer.is_error:
        return answer
    try:
        problem: Json = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        problem = {}
    raise error_of(problem, answer.status)


def error_of(problem: Json, status: int) -> StoreError:
    """Return the exception for *problem*, or for *status* if the answer has no problem."""
    text = str(problem.get("detail") or problem.get("title") or f"HTTP {status}")
    facts = {name: value for name, value in problem.items() if name not in _PROBLEM_MEMBERS and _is_fact(value)}
    return BY_REASON.get(str(problem.get("reason")), StoreError)(text, **facts)


def _is_fact(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)
