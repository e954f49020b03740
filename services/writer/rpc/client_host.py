"""The sender of a batch: converts gRPC's peer string to host bytes as in records."""

from __future__ import annotations

import functools
import ipaddress
from urllib.parse import unquote

from tidemark.format.host import Host, decode_host, encode_host, parse_host

_LOCAL = Host("127.0.0.1", 0)


@functools.lru_cache(maxsize=1024)
def born_host_of(peer: str) -> bytes:
    """Return 8 or 20 bytes for ``ipv4:1.2.3.4:5`` or ``ipv6:%5B::1%5D:5``; others (a Unix socket) are 127.0.0.1:0."""
    kind, _, address = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return encode_host(_LOCAL)
    try:
        host = parse_host(_without_scope(unquote(address)))
    except ValueError:
        return encode_host(_LOCAL)
    parsed = ipaddress.ip_address(host.address)
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        host = Host(str(parsed.ipv4_mapped), host.port)
    return encode_host(host)


@functools.lru_cache(maxsize=1024)
def address_of(peer: str) -> str:
    """Return the IP address without port; 127.0.0.1 for a Unix socket."""
    return decode_host(born_host_of(peer)).address


def _without_scope(address: str) -> str:
    """Remove the scope: ``[fe80::1%eth0]:5`` → ``[fe80::1]:5``."""
    scope = address.find("%")
    return address if scope < 0 else address[:scope] + address[address.index("]", scope) :]
