"""Conversion of gRPC's peer string to host bytes."""

from __future__ import annotations

import pytest

from services.writer.rpc.client_host import born_host_of
from tidemark.format.host import Host, decode_host


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:10.1.2.3:54321", Host("10.1.2.3", 54321)),
        ("ipv6:%5B::1%5D:54321", Host("::1", 54321)),
        ("ipv6:[2001:db8::7]:1", Host("2001:db8::7", 1)),
        ("ipv6:%5Bfe80::1%25eth0%5D:9", Host("fe80::1", 9)),
        ("ipv6:%5B::ffff:10.1.2.3%5D:5", Host("10.1.2.3", 5)),
        ("unix:", Host("127.0.0.1", 0)),
        ("unix:/run/writer.sock", Host("127.0.0.1", 0)),
        ("ipv4:rubbish", Host("127.0.0.1", 0)),
        ("", Host("127.0.0.1", 0)),
    ],
)
def test_the_peer_address_becomes_the_born_host(peer: str, host: Host) -> None:
    """IPv4 (also mapped into IPv6) takes 8 bytes, IPv6 20; a peer without an address is local."""
    data = born_host_of(peer)
    assert decode_host(data) == host
    assert len(data) == (20 if ":" in host.address else 8)
