"""call_writer: one call to a writer, which fails at once if waiting cannot help."""

from __future__ import annotations

from typing import Any

import grpc

from tidemark.client.errors.address_faults import LOOK_S, PATIENCE_S, wrong_address
from tidemark.client.errors.grpc_errors import error_of_rpc
from tidemark.client.errors.tls_faults import with_cause
from tidemark.tls.credentials import Credentials


def call_writer(method: Any, request: Any, address: str, credentials: Credentials, *, timeout_s: float) -> Any:
    """Return the answer to *request*. *method*: of a gRPC stub, on a channel to *address*.

    Raises a StoreError: the writer's reason; WriterUnreachableError, at once if no writer can be at the address;
    DeadlineExceededError after *timeout_s*.
    """
    call = method.future(request, timeout=timeout_s)
    try:
        return call.result(timeout=min(PATIENCE_S, timeout_s))
    except grpc.FutureTimeoutError:
        pass
    except grpc.RpcError as error:
        raise with_cause(error_of_rpc(error), address, credentials) from error
    fault = wrong_address(address, credentials) if timeout_s > PATIENCE_S + LOOK_S else None
    if fault is not None:
        call.cancel()
        raise fault
    try:
        return call.result()
    except grpc.RpcError as error:
        raise with_cause(error_of_rpc(error), address, credentials) from error
