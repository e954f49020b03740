"""Reasons for which a frame is refused. The connection is closed without an answer."""

from __future__ import annotations

import enum

from tidemark.errors import Fact, FrameIllegalError


class FrameFault(enum.StrEnum):
    """Stable reasons of a FrameIllegalError, its fact `reason`."""

    LENGTH_TOO_SMALL = "LENGTH_TOO_SMALL"  # less than the mark's four bytes
    LENGTH_EXCEEDED = "LENGTH_EXCEEDED"  # more than the limit; the start of an HTTP request is such a length, too
    LENGTH_DIFFERS = "LENGTH_DIFFERS"  # the bytes to decode are not one whole frame
    SERIALIZATION_UNKNOWN = "SERIALIZATION_UNKNOWN"
    HEADER_EXCEEDS_FRAME = "HEADER_EXCEEDS_FRAME"
    NOT_JSON = "NOT_JSON"  # includes JSON that is nested too deeply
    NOT_AN_OBJECT = "NOT_AN_OBJECT"
    MEMBER_ILLEGAL = "MEMBER_ILLEGAL"  # a member of a JSON header is missing or has another type or range
    BINARY_HEADER_ILLEGAL = "BINARY_HEADER_ILLEGAL"  # a length of the binary header is wrong
    NOT_UTF8 = "NOT_UTF8"


def frame_illegal(fault: FrameFault, message: str, **facts: Fact) -> FrameIllegalError:
    """Return the error for *fault*."""
    return FrameIllegalError(message, reason=str(fault), **facts)
