"""Usage errors in the command's own words: typer reports those of pydantic, some of which do not name the value."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import typer

VALUE_ERROR = "Value error, "  # pydantic's prefix of the message of a validator


@contextlib.contextmanager
def plain_usage_errors() -> Iterator[None]:
    """Raise usage errors of the block with messages that name the value and the limit."""
    try:
        yield
    except typer.BadParameter as error:
        error.message = _plain_message(error)
        raise


def _plain_message(error: typer.BadParameter) -> str:
    faults = getattr(error.__cause__, "errors", None)
    if faults is None:
        return error.message
    fault: dict[str, Any] = faults(include_url=False)[0]
    value, limits = fault["input"], fault.get("ctx", {})
    match fault["type"]:
        case "int_parsing" | "int_type":
            return f"{value!r} is not a whole number."
        case "float_parsing" | "float_type":
            return f"{value!r} is not a number."
        case "greater_than_equal":
            return f"{value} is too small: at least {limits['ge']}."
        case "less_than_equal":
            return f"{value} is too great: at most {limits['le']}."
        case _:
            return error.message.removeprefix(VALUE_ERROR)
