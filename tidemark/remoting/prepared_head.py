"""Heads of frames of which only the opaque number and the body's size vary.

A program that sends one small request after another spends more time on a frame's JSON header than on its body. A
`RequestHead` is encoded once, and so is the head of an answer SUCCESS without fields, which the services send and our
clients recognise.
"""

from __future__ import annotations

from tidemark.remoting.codes import VERSION, Language, ResponseCode
from tidemark.remoting.frame import ANSWER, REQUEST, Buffer
from tidemark.remoting.framing import HEAD
from tidemark.remoting.json_header import encode_json_header

_OPAQUE = b'"opaque":'  # a member's name; within a text, JSON escapes the quotation marks


class RequestHead:
    """The encoded head of requests with this code and these fields, as `framing.encode` encodes it."""

    def __init__(self, code: int, fields: dict[str, str]) -> None:
        header = encode_json_header(code, REQUEST, 0, Language.PYTHON, VERSION, "", fields)
        self._before, self._after = _split(header)

    def encode(self, opaque: int, body_size: int) -> bytes:
        """Return the bytes before the body of the request with this *opaque* number."""
        header = b"%b%d%b" % (self._before, opaque, self._after)
        size = len(header)
        return HEAD.pack(4 + size + body_size, size) + header


def encode_success(opaque: int, body: Buffer) -> bytes:
    """Encode the answer SUCCESS to request *opaque*, without remark and fields, as `framing.encode` encodes it."""
    header = b"%b%d%b" % (_SUCCESS_BEFORE, opaque, _SUCCESS_AFTER)
    size = len(header)
    return b"".join((HEAD.pack(4 + size + len(body), size), header, body))


def success_body(data: bytes, opaque: int) -> bytes | None:
    """Return the body of *data* if that is one whole answer SUCCESS to the request *opaque*, without fields.

    None: it is anything else, or its header is written differently; `framing` decodes it.
    """
    header = b"%b%d%b" % (_SUCCESS_BEFORE, opaque, _SUCCESS_AFTER)
    size = len(header)
    if not data.startswith(header, HEAD.size) or HEAD.unpack_from(data) != (len(data) - 4, size):
        return None
    return data[HEAD.size + size :]


def _split(header: bytes) -> tuple[bytes, bytes]:
    """Return the parts of *header*, whose opaque number is 0, before and after that number."""
    before, name, after = header.partition(_OPAQUE + b"0")
    assert name, "a header has an opaque number"
    return before + _OPAQUE, after


_SUCCESS_BEFORE, _SUCCESS_AFTER = _split(
    encode_json_header(ResponseCode.SUCCESS, ANSWER, 0, Language.JAVA, VERSION, "", {})
)
