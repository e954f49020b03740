"""Check of a server certificate by a handshake in memory with a client that trusts only this certificate."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path
from typing import NamedTuple

from tidemark.tls.pem import as_text, illegal


class Leaf(NamedTuple):
    """A server's certificate. name: its first DNS name or IP address; "" if it has none. expires_s: epoch seconds."""

    name: str
    expires_s: float


def try_certificate(server: ssl.SSLContext, pem: bytes, path: Path) -> Leaf:
    """Return facts of the certificate *pem*, which *server* presents.

    Raises TlsFilesError if a client would reject it, for example because it expired or is not for servers.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False  # the name is not checked
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # trust the certificate itself, not its issuer
    client.load_verify_locations(cadata=as_text(pem))
    try:
        shown = _handshake(client, server)
    except ssl.SSLCertVerificationError as error:
        raise illegal(path, error.verify_message) from None
    except ssl.SSLError as error:
        raise illegal(path, f"cannot be used by a server: {error.reason}") from None
    return Leaf(_name(shown), float(ssl.cert_time_to_seconds(str(shown["notAfter"]))))


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> dict[str, object]:
    """Return the server's certificate as the client sees it after accepting it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    while True:
        with contextlib.suppress(ssl.SSLWantReadError):
            asking.do_handshake()
            return dict(asking.getpeercert() or {})
        with contextlib.suppress(ssl.SSLWantReadError):
            answering.do_handshake()


def _name(shown: dict[str, object]) -> str:
    """Return the first DNS name or IP address; "" if there is none."""
    names = shown.get("subjectAltName")
    assert names is None or isinstance(names, tuple)
    return next((str(value) for kind, value in names or () if kind in ("DNS", "IP Address")), "")
