"""The choice of the wire: remoting frames over TCP where a service offers them, or gRPC and HTTP."""

from __future__ import annotations

import ipaddress
import os
from typing import Literal
from urllib.parse import urlsplit

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


def may_use(offered: str, reached: str) -> bool:
    """Return True if a client may use *offered*, an address for remoting frames, host:port.

    A service behind mapped ports or on another machine may offer a loopback address, at which this machine has another
    store: only a client that has *reached* the service by a loopback address, too, may use it.
    """
    return not _is_loopback(offered) or _is_loopback(reached)


def _is_loopback(address: str) -> bool:
    """Return True if *address*, with or without a port or a scheme, is this machine's own."""
    host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
