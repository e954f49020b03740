"""The certificate that a port presents to a new connection."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable

from tests.certificates import Pair

_TIMEOUT_S = 30.0


def shows(port: int, pair: Pair) -> bool:
    """Return True if it is that of *pair*."""
    shown = ssl.get_server_certificate(("127.0.0.1", port), timeout=_TIMEOUT_S)
    return ssl.PEM_cert_to_DER_cert(shown) == ssl.PEM_cert_to_DER_cert(pair.cert.read_text())


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
