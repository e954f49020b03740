"""Output forms of messages, as bytes for standard output."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from typing import NamedTuple

from tidemark.cli.reading.message_template import message_template
from tidemark.cli.reading.message_text import HEADER, Message, body_bytes, message_line


class OutputForm(enum.StrEnum):
    """Output forms of messages."""

    TABLE = "table"
    JSON = "json"
    RAW = "raw"


class MessageFormat(NamedTuple):
    """A form of messages. head: printed before the first message."""

    encode: Callable[[Message], bytes]
    head: bytes = b""


def message_format(form: OutputForm, *, terminator: bytes, template: str | None) -> MessageFormat:
    """Return the format of *form*, or of *template* if there is one. terminator: the end of each raw body."""
    if template is not None:
        return MessageFormat(message_template(template, for_terminal=sys.stdout.isatty()))
    match form:
        case OutputForm.TABLE:
            return MessageFormat(lambda message: _line(message_line(message)), _line(HEADER))
        case OutputForm.JSON:
            import orjson

            return MessageFormat(lambda message: orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))
        case OutputForm.RAW:
            return MessageFormat(lambda message: body_bytes(message) + terminator)


def _line(text: str) -> bytes:
    """Encode a line for the terminal; escape characters that its encoding lacks."""
    return f"{text}\n".encode(sys.stdout.encoding, "backslashreplace")
