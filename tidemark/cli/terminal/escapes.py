r"""Escapes in the values of options: `\n`, `\t`, `\r`, `\0`, `\\` and `\xNN`."""

from __future__ import annotations

import re

import typer

ESCAPES = r"\n \t \r \0 \\ \xNN"
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{2}|.?)", re.DOTALL)
_BYTES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}


def unescape(text: str, *, option: str) -> bytes:
    """Return the bytes of *text*, the value of *option*. Raises a usage error for an unknown escape."""

    def replaced(found: re.Match[bytes]) -> bytes:
        name = found[1]
        if len(name) == len(b"xNN"):
            return bytes.fromhex(name[1:].decode())
        if name not in _BYTES:
            shown = found[0].decode("utf-8", "replace")
            raise typer.BadParameter(f"{shown} is no escape; the escapes are {ESCAPES}", param_hint=option)
        return _BYTES[name]

    return _ESCAPE.sub(replaced, text.encode("utf-8", "surrogateescape"))
