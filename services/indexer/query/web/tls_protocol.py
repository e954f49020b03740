"""HTTP over TLS: a connection that passes the client's certificate to the application."""

from __future__ import annotations

import asyncio

from .limited_protocol import LimitedHttpProtocol


class TlsProtocol(LimitedHttpProtocol):
    """Sets `scope["extensions"]["tls"]` as in ASGI's TLS extension, with `client_cert_der`: bytes, or None."""

    sends_files = False  # the kernel does not encrypt
    _certificate: bytes | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Store the client's certificate: the handshake is complete."""
        super().connection_made(transport)
        self._certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)

    def on_message_begin(self) -> None:
        """Add the certificate to the request's scope."""
        super().on_message_begin()
        self.scope["extensions"] = {"tls": {"client_cert_der": self._certificate}}
