"""HTTP over TLS: a connection that also tells the application which certificate the client has shown."""

from __future__ import annotations

import asyncio

from .limited_protocol import LimitedHttpProtocol


class TlsProtocol(LimitedHttpProtocol):
    """`scope["extensions"]["tls"]`, as in ASGI's TLS extension, with `client_cert_der`: bytes, or None."""

    _certificate: bytes | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The handshake is over."""
        super().connection_made(transport)
        self._certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {"tls": {"client_cert_der": self._certificate}}
