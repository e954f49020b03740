"""ServerFiles: the PEM files of a service and their checked contents."""

from __future__ import annotations

import enum
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tidemark.settings.reloaded_files import Stamp, stamps_of
from tidemark.tls.pem import as_text, load_pair, read_certificates, read_key
from tidemark.tls.self_handshake import Leaf, try_certificate


class ClientAuth(enum.StrEnum):
    """Policy for client certificates."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.OPTIONAL: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


class LoadedCertificates(NamedTuple):
    """Contents of the files. cert, key, client_ca: PEM, for gRPC; context: the same, for HTTP."""

    cert: bytes
    key: bytes
    client_ca: bytes | None
    context: ssl.SSLContext
    leaf: Leaf


@dataclass(frozen=True)
class ServerFiles:
    """PEM files of a server. cert: a chain, the server's own certificate first. client_ca:

    CAs of client certificates.
    """

    cert: Path
    key: Path
    client_ca: Path | None
    client_auth: ClientAuth

    def load(self) -> LoadedCertificates:
        """Read and check all files. Raises TlsFilesError, which names the invalid file."""
        context = _context(self.cert, self.key)
        cert = read_certificates(self.cert)
        leaf = try_certificate(context, cert, self.cert)
        client_ca = None
        if self.client_ca is not None and self.client_auth is not ClientAuth.NONE:
            client_ca = read_certificates(self.client_ca)
            context.load_verify_locations(cadata=as_text(client_ca))
            context.verify_mode = _VERIFY[self.client_auth]
            # With TLS 1.2 the ssl module lets a client resume an old session, even if its certificate's CA is no longer
            # trusted.
            context.minimum_version = ssl.TLSVersion.TLSv1_3
        return LoadedCertificates(cert, read_key(self.key), client_ca, context, leaf)

    def stamps(self) -> tuple[Stamp, ...]:
        """Return stamps that differ after a file has changed."""
        return stamps_of((self.cert, self.key, self.client_ca))


def _context(cert: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.num_tickets = 0  # a client could resume a session by a ticket without presenting its certificate
    context.options |= ssl.OP_NO_TICKET
    load_pair(context, cert, key)
    return context
