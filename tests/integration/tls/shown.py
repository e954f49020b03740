"""The certificate that a port presents to a new connection."""

from __future__ import annotations

import ssl

from tests.certificates import Pair

_TIMEOUT_S = 30.0


def shows(port: int, pair: Pair) -> bool:
    """Return True if it is that of *pair*."""
    shown = ssl.get_server_certificate(("127.0.0.1", port), timeout=_TIMEOUT_S)
    return ssl.PEM_cert_to_DER_cert(shown) == ssl.PEM_cert_to_DER_cert(pair.cert.read_text())
