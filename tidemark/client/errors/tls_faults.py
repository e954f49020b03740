"""Finds TLS faults behind gRPC's unspecific "unavailable" errors."""

from __future__ import annotations

from tidemark.client.errors.address_faults import explained
from tidemark.errors import DeadlineExceededError, StoreError, TlsFailedError, WriterUnreachableError
from tidemark.tls.credentials import Credentials
from tidemark.tls.fault import look

_UNREACHED = (DeadlineExceededError, WriterUnreachableError)


def with_cause(error: StoreError, address: str, credentials: Credentials) -> StoreError:
    """Return *error* of a call to the writer at *address*, or an error that names the cause.

    Dials the writer once more, for a second or two. The result is TlsFailedError if TLS is the cause, otherwise an
    error of the same class with the address and the cause.
    """
    if not isinstance(error, _UNREACHED):
        return error
    return _tls_fault(error, address, credentials) or explained(error, address, credentials)


def _tls_fault(error: StoreError, address: str, credentials: Credentials) -> TlsFailedError | None:
    target = credentials.target(address)
    host, _, port = target.address.rpartition(":")
    if not port.isdecimal():
        return None
    fault = look(host.strip("[]"), int(port), credentials=credentials, is_tls=target.is_tls, protocols=["h2"])
    if fault is None:
        return None
    hint = "" if target.is_tls else ": give its CA, or write tls://host:port"
    return TlsFailedError(f"the writer at {target.address} was not reached: {fault}{hint}", address=address)
