"""The choice of the wire: remoting frames over TCP where a service offers them, or gRPC and HTTP."""

from __future__ import annotations

import os
from typing import Literal

from tidemark.errors import ArgumentIllegalError

Wire = Literal["remoting", "grpc"]


def default_wire() -> Wire:
    """Return TIDEMARK_CLIENT_WIRE, or its default, remoting. Raises ArgumentIllegalError for another value."""
    return checked_wire(os.environ.get("TIDEMARK_CLIENT_WIRE") or "remoting", "TIDEMARK_CLIENT_WIRE")


def checked_wire(value: str, name: str = "wire") -> Wire:
    """Return *value* if it is a wire. Raises ArgumentIllegalError."""
    if value == "remoting":
        return "remoting"
    if value == "grpc":
        return "grpc"
    raise ArgumentIllegalError(f"{name} is {value!r}: give remoting or grpc", argument="wire")
