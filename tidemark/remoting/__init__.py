"""RocketMQ's remoting protocol as pure functions: bytes in, values out. docs/remoting.md.

This package must not import sockets, asyncio, numpy or a service. It is part of the `client` extra.
"""

from tidemark.remoting.codes import Language, RequestCode, ResponseCode, Serialization
from tidemark.remoting.frame import Frame, answer_to, request
from tidemark.remoting.framing import MAX_FRAME_SIZE_BYTES, decode, encode, encode_parts, split

__all__ = [
    "MAX_FRAME_SIZE_BYTES",
    "Frame",
    "Language",
    "RequestCode",
    "ResponseCode",
    "Serialization",
    "answer_to",
    "decode",
    "encode",
    "encode_parts",
    "request",
    "split",
]
