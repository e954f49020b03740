"""Diagnosis of TLS problems between a client and a service, by a second connection attempt."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence

from tidemark.errors import TlsFilesError
from tidemark.tls.credentials import Credentials

_TIMEOUT_S = 1.0
_LAST_WORD_S = 0.3  # time for the server to reject the client certificate after the handshake
_WANTS_ONE = "it requires a client certificate, and this client presented {}"
_ALERTS = {  # reason in the ssl module → the server's verdict on our certificate
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "none that it accepts",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "none that it accepts",
    "TLSV1_ALERT_UNKNOWN_CA": "one of a CA that it does not trust",
    "SSLV3_ALERT_BAD_CERTIFICATE": "one that it does not accept",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "one that has expired",
    "TLSV1_ALERT_DECRYPT_ERROR": "one of a CA that it does not trust",
}


def fault_of(error: BaseException) -> str | None:
    """Describe the exception of a TLS connection; None if TLS is not the cause."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if not isinstance(error, ssl.SSLError):
        return None
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "it does not use TLS"
    if error.reason in _ALERTS:
        return _WANTS_ONE.format(_ALERTS[error.reason])
    return None if isinstance(error, ssl.SSLEOFError) else f"TLS failed: {error.reason or error}"


def look(host: str, port: int, *, credentials: Credentials, is_tls: bool, protocols: Sequence[str] = ()) -> str | None:
    """Connect to host:port and describe the TLS problem; None if there is none or the cause is not TLS.

    is_tls     the client uses TLS
    protocols  ALPN protocols, which gRPC requires
    """
    try:
        context = credentials.context(trusts_all=not is_tls)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        with socket.create_connection((host, port), _TIMEOUT_S) as plain:
            return _look_with_tls(plain, context, host) if is_tls else _look_for_tls(plain, context, host)
    except (OSError, TlsFilesError):
        return None


def _look_with_tls(plain: socket.socket, context: ssl.SSLContext, host: str) -> str | None:
    with context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False) as secure:
        try:
            secure.do_handshake()
        except ssl.SSLError as error:
            return fault_of(error)
        secure.settimeout(_LAST_WORD_S)
        try:
            ended = not secure.recv(1)
        except TimeoutError:
            return None
        except (ConnectionResetError, ssl.SSLEOFError):
            ended = True
        except ssl.SSLError as error:
            return fault_of(error)
        return _WANTS_ONE.format("none that it accepts") if ended else None


def _look_for_tls(plain: socket.socket, context: ssl.SSLContext, host: str) -> str | None:
    try:
        context.wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLError as error:
        if "ALERT" not in (error.reason or ""):
            return None
    return "it uses TLS, and this client does not"
