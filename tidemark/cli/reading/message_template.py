r"""Templates of `consume --template`: the bytes of a message as its parts and literal text, such as `%k\t%b\n`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from tidemark.cli.reading.message_text import Message, body_bytes
from tidemark.cli.terminal.escapes import ESCAPES, unescape
from tidemark.cli.terminal.output import printable, time_text

_OPTION = "--template"
_Part = Callable[[Message], bytes]


def _json(value: Any) -> bytes:
    import orjson

    encoded: bytes = orjson.dumps(value)
    return encoded


_PARTS: dict[str, tuple[str, Callable[[Message], str | bytes]]] = {
    "t": ("topic", lambda message: str(message["topic"])),
    "q": ("queue", lambda message: str(message["queue_id"])),
    "o": ("queue offset", lambda message: str(message["queue_offset"])),
    "k": ("keys, separated by spaces", lambda message: " ".join(message["keys"])),
    "g": ("tag", lambda message: message["tag"] or ""),
    "b": ("body", body_bytes),
    "x": ("body in hexadecimal", lambda message: body_bytes(message).hex()),
    "S": ("size of the body in bytes", lambda message: str(len(body_bytes(message)))),
    "T": ("store time in epoch milliseconds", lambda message: str(message["store_timestamp_ms"])),
    "D": ("store time in RFC 3339", lambda message: time_text(message["store_timestamp_ms"])),
    "p": ("properties as JSON", lambda message: _json(message["properties"])),
    "i": ("message id", lambda message: message["message_id"] or ""),
}
TEMPLATE_HELP = (
    ", ".join(f"%{letter} {meaning}" for letter, (meaning, _) in _PARTS.items()) + f", %% a percent sign; {ESCAPES}"
)


def message_template(text: str, *, for_terminal: bool) -> Callable[[Message], bytes]:
    """Return a function of a message that fills in the template *text*.

    for_terminal: escape control characters of the message's parts, and bytes that are not UTF-8

    Raises a usage error for an unknown part or escape, and for a text without a part.
    """
    pieces = text.split("%%")
    parts: list[_Part] = []
    for number, piece in enumerate(pieces):
        parts += [_literal(b"%")] * bool(number)
        literal, *fields = piece.split("%")
        parts.append(_literal(unescape(literal, option=_OPTION)))
        for field in fields:
            parts += (_field(field[:1], for_terminal=for_terminal), _literal(unescape(field[1:], option=_OPTION)))
    if "%" not in text.replace("%%", ""):
        raise typer.BadParameter(f"{text!r} has no part of the message: {TEMPLATE_HELP}", param_hint=_OPTION)
    return lambda message: b"".join(part(message) for part in parts)


def _literal(value: bytes) -> _Part:
    return lambda message: value


def _field(letter: str, *, for_terminal: bool) -> _Part:
    if letter not in _PARTS:
        raise typer.BadParameter(f"%{letter} is unknown; known are {TEMPLATE_HELP}", param_hint=_OPTION)
    _, read = _PARTS[letter]

    def encoded(message: Message) -> bytes:
        value = read(message)
        raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        return printable(raw.decode("utf-8", "backslashreplace")).encode() if for_terminal else raw

    return encoded
