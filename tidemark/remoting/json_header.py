"""The JSON form of a frame's header.

Members may come in any order, and unknown ones are ignored. Values of `extFields` are text; numbers and booleans are
accepted as their text.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from tidemark.errors import FrameIllegalError
from tidemark.remoting.codes import LANGUAGE_BY_NAME, LANGUAGE_NAMES, Language
from tidemark.remoting.faults import FrameFault, frame_illegal

# code, flag, opaque, language, version, remark and fields: in the order of `Frame`
Header = tuple[int, int, int, Language, int, str, dict[str, str]]

_LOW, _HIGH = -0x80000000, 0x7FFFFFFF  # of the four numbers


def decode_json_header(data: bytes | memoryview) -> Header:
    """Decode a header. `code` and `opaque` are required.

    Raises:
        FrameIllegalError: *data* is no JSON object, or a member has another type.
    """
    try:
        header = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise frame_illegal(FrameFault.NOT_JSON, f"the header is no JSON: {error}") from None
    if type(header) is not dict:
        raise frame_illegal(FrameFault.NOT_AN_OBJECT, "the header is JSON, but no object")
    get = header.get
    code, flag, opaque, version = get("code"), get("flag", 0), get("opaque"), get("version", 0)
    if not (
        type(code) is type(flag) is type(opaque) is type(version) is int
        and _LOW <= code <= _HIGH
        and _LOW <= flag <= _HIGH
        and _LOW <= opaque <= _HIGH
        and _LOW <= version <= _HIGH
    ):
        raise _number_illegal({"code": code, "flag": flag, "opaque": opaque, "version": version})
    remark, name, fields = get("remark"), get("language"), get("extFields")
    if remark is None:
        remark = ""
    elif type(remark) is not str:
        raise _member_illegal("remark", "text")
    language = LANGUAGE_BY_NAME.get(name, Language.OTHER) if type(name) is str else Language.OTHER
    if fields is None:
        fields = {}
    elif type(fields) is not dict:
        raise _member_illegal("extFields", "an object")
    for value in fields.values():
        if type(value) is not str:
            fields = _texts(data)
            break
    return code, flag, opaque, language, version, remark, fields


def encode_json_header(
    code: int, flag: int, opaque: int, language: Language, version: int, remark: str, fields: dict[str, str]
) -> bytes:
    """Encode a header. An empty *remark* and empty *fields* are left out."""
    header: dict[str, Any] = {"code": code}
    if fields:
        header["extFields"] = fields
    header["flag"] = flag
    header["language"] = LANGUAGE_NAMES[language]
    header["opaque"] = opaque
    if remark:
        header["remark"] = remark
    header["serializeTypeCurrentRPC"] = "JSON"
    header["version"] = version
    return orjson.dumps(header)


def _texts(data: bytes | memoryview) -> dict[str, str]:
    """Return `extFields` with the text of its numbers and booleans; null counts as absent.

    The standard library's decoder keeps the digits of a number, which orjson rounds to a double.
    """
    try:
        fields = json.loads(bytes(data), parse_int=str, parse_float=str)["extFields"]
    except RecursionError:
        raise frame_illegal(FrameFault.NOT_JSON, "the header is no JSON: it is nested too deeply") from None
    texts = {}
    for name, value in fields.items():
        if type(value) is str:
            texts[name] = value
        elif type(value) is bool:
            texts[name] = "true" if value else "false"
        elif value is not None:
            raise _member_illegal("extFields", "an object of texts, numbers and booleans")
    return texts


def _number_illegal(numbers: dict[str, Any]) -> FrameIllegalError:
    for member, value in numbers.items():
        if type(value) is not int or not _LOW <= value <= _HIGH:
            return _member_illegal(member, f"an integer from {_LOW} to {_HIGH}")
    raise AssertionError("every number is legal")


def _member_illegal(member: str, allowed: str) -> FrameIllegalError:
    return frame_illegal(FrameFault.MEMBER_ILLEGAL, f"the header's {member} must be {allowed}", member=member)
