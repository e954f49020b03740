"""Hosts as stored in records: IP address (4 or 16 bytes) and port (4 bytes, big-endian), docs/format.md §1."""

from __future__ import annotations

import ipaddress
import struct
from typing import NamedTuple

IPV4_HOST_SIZE = 8
IPV6_HOST_SIZE = 20
_PORT = struct.Struct(">i")


class Host(NamedTuple):
    """An address literal and a port."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def parse_host(text: str) -> Host:
    """Parse ``127.0.0.1:8081`` or ``[::1]:8081``. Raises ValueError unless it is an address literal and a number."""
    address, separator, port = text.rpartition(":")
    if not separator:
        raise ValueError(f"{text!r} is not address:port")
    return Host(str(ipaddress.ip_address(address.removeprefix("[").removesuffix("]"))), int(port))


def encode_host(host: Host) -> bytes:
    """Return 8 bytes for IPv4, 20 for IPv6."""
    return ipaddress.ip_address(host.address).packed + _PORT.pack(host.port)


def decode_host(data: bytes | memoryview) -> Host:
    """Decode 8 or 20 bytes. Raises ValueError for another length."""
    raw = bytes(data)
    if len(raw) not in (IPV4_HOST_SIZE, IPV6_HOST_SIZE):
        raise ValueError(f"a host must have 8 or 20 bytes, not {len(raw)}")
    return Host(str(ipaddress.ip_address(raw[:-4])), _PORT.unpack(raw[-4:])[0])
