"""OtherLogs: the logs of the other members of a group, over gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import grpc

from tidemark.client.errors.grpc_errors import error_of_rpc
from tidemark.tls.credentials import Credentials
from tidemark.v1 import replication_pb2 as pb
from tidemark.v1.replication_pb2_grpc import ReplicationServiceStub

from .member_channel import call_metadata, member_channel

_FETCHED_BYTES = 16 << 20  # by one call
_TIMEOUT_S = 30.0  # for 64 MiB from a slow disk


class OtherLogs:
    """See `services.writer.replication.log_repair.OtherLogs`. addresses: by the names of the members."""

    def __init__(self, addresses: Mapping[str, str], credentials: Credentials) -> None:
        self._addresses = addresses
        self._credentials = credentials

    @property
    def names(self) -> Sequence[str]:
        """Names of the members."""
        return tuple(self._addresses)

    async def checksums(self, name: str, begin: int, end: int, step: int) -> Sequence[int]:
        """Return the CRC-32 of each *step* bytes of [begin, end). Raises StoreError."""
        request = pb.ChecksumLogRequest(begin_offset=begin, end_offset=end, step_bytes=step)
        answer: pb.ChecksumLogResponse = await self._call(name, "ChecksumLog", request)
        return answer.crcs

    async def fetch(self, name: str, begin: int, end: int) -> bytes:
        """Return the bytes of [begin, end). Raises StoreError."""
        parts = []
        for at in range(begin, end, _FETCHED_BYTES):
            request = pb.FetchLogRequest(begin_offset=at, end_offset=min(at + _FETCHED_BYTES, end))
            answer: pb.FetchLogResponse = await self._call(name, "FetchLog", request)
            parts.append(answer.data)
        return b"".join(parts)

    async def _call(self, name: str, method: str, request: Any) -> Any:
        async with member_channel(self._addresses[name], self._credentials) as channel:
            stub = ReplicationServiceStub(channel)
            try:
                return await getattr(stub, method)(
                    request, timeout=_TIMEOUT_S, metadata=call_metadata(self._credentials)
                )
            except grpc.RpcError as error:
                raise error_of_rpc(error) from error
