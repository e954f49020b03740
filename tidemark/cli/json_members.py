"""The members of a JSON object with the exact text of each value, so that numbers keep their digits."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = json.JSONDecoder(strict=True)
_VALUE = json.JSONDecoder(parse_float=str, parse_int=str)  # the value is not used, so no number is converted


class Member(NamedTuple):
    """One value of an object. times: how often the object has its name."""

    text: str
    times: int


def members_of(text: str) -> dict[str, Member]:
    """Return the members of the valid JSON object *text* by name; of a repeated name the last one."""
    members: dict[str, Member] = {}
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        name, at = _STRING.raw_decode(text, at)
        begin = _skip(text, _skip(text, at) + 1)
        _, end = _VALUE.raw_decode(text, begin)
        known = members.get(name)
        members[name] = Member(text[begin:end], 1 if known is None else known.times + 1)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return members


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None, "it matches the empty text, too"
    return found.end()
