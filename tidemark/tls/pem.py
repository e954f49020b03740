"""Reading and validation of PEM files. Errors name the file and contain nothing of its contents."""

from __future__ import annotations

import ssl
from pathlib import Path

from tidemark.errors import TlsFilesError

_CERTIFICATE, _PRIVATE_KEY = b"-----BEGIN CERTIFICATE-----", b"PRIVATE KEY-----"
_OTHER_KEY = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})


def read_certificates(path: Path) -> bytes:
    """Return a PEM file of one or more certificates. Raises TlsFilesError, which names *path*."""
    pem = _read(path, _CERTIFICATE, "certificate")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=as_text(pem))
    except (ssl.SSLError, ValueError):
        raise illegal(path, "contains a certificate that cannot be parsed") from None
    return pem


def read_key(path: Path) -> bytes:
    """Return a PEM file of a private key. Raises TlsFilesError, which names *path*."""
    return _read(path, _PRIVATE_KEY, "private key")


def load_pair(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    """Load the certificate and its key into *context*. Raises TlsFilesError, which names the invalid file."""
    read_certificates(cert)
    read_key(key)
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except ssl.SSLError as error:
        if error.reason in _OTHER_KEY:
            raise illegal(key, f"is not the private key of {cert}") from None
        raise illegal(
            key, f"cannot be used with {cert}: {error.reason or 'it is encrypted or not a private key'}"
        ) from None
    except OSError as error:
        raise illegal(key, f"cannot be read: {error.strerror}") from None


def as_text(pem: bytes) -> str:
    """Decode for the ssl module, which accepts only ASCII; comments between certificates may contain other bytes."""
    return pem.decode("ascii", "ignore")


def illegal(path: Path, fault: str) -> TlsFilesError:
    """Return the error for *path*."""
    return TlsFilesError(f"{path}: {fault}", path=str(path))


def _read(path: Path, marker: bytes, what: str) -> bytes:
    try:
        pem = path.read_bytes()
    except OSError as error:
        raise illegal(path, f"cannot be read: {error.strerror}") from None
    if marker not in pem:
        raise illegal(path, f"contains no {what} in PEM format")
    return pem


def _no_password() -> str:
    """Return no password, so that OpenSSL does not prompt on the terminal."""
    return ""
