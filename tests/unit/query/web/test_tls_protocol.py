from __future__ import annotations

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from services.indexer.query.web.tls_protocol import TlsProtocol
from tests.unit.query.web.connections import Connections, answer_with_body, answered


class FakeTls:
    """The TLS side of a connection, with the certificate that the client has shown."""

    def __init__(self, certificate: bytes | None) -> None:
        self._certificate = certificate

    def getpeercert(self, *, binary_form: bool) -> bytes | None:
        assert binary_form
        return self._certificate


@pytest.mark.parametrize("certificate", [b"DER of the client", None])
def test_each_request_of_a_connection_has_the_certificate_of_its_client(certificate: bytes | None) -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await answer_with_body(scope, receive, send)

    async def ask() -> None:
        protocol, transport = Connections(app=app, kind=TlsProtocol).open(ssl_object=FakeTls(certificate))
        for number in (1, 2):
            protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
            await answered(transport, number)

    asyncio.run(ask())
    assert [scope["extensions"]["tls"] for scope in seen] == [{"client_cert_der": certificate}] * 2
