"""Failures of gRPC behind which TLS stands: gRPC says no more than that it reached nobody."""

from __future__ import annotations

from tidemark.errors import DeadlineExceededError, StoreError, TlsFailedError, WriterUnreachableError
from tidemark.tls.credentials import Credentials
from tidemark.tls.fault import look

_UNREACHED = (DeadlineExceededError, WriterUnreachableError)


def told_apart(error: StoreError, address: str, credentials: Credentials) -> StoreError:
    """*error* of a call to the writer at *address*; the TlsFailedError behind it, where one is found within a second or
    two: the writer is dialled once more."""
    if not isinstance(error, _UNREACHED):
        return error
    target = credentials.target(address)
    host, _, port = target.address.rpartition(":")
    if not port.isdecimal():
        return error
    fault = look(host.strip("[]"), int(port), credentials=credentials, is_tls=target.is_tls, protocols=["h2"])
    if fault is None:
        return error
    hint = "" if target.is_tls else ": give its CA, or write tls://host:port"
    return TlsFailedError(f"the writer at {target.address} was not reached: {fault}{hint}", address=address)
