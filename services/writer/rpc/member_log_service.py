"""MemberLogService: the part of the ReplicationService that a member offers in every role."""

from __future__ import annotations

from typing import Any

import grpc

from tidemark.errors import ArgumentIllegalError
from tidemark.v1 import replication_pb2 as pb
from tidemark.v1.replication_pb2_grpc import ReplicationServiceServicer

from ..replication.member_log import MemberLog

_Context = grpc.aio.ServicerContext[Any, Any]
_MOST_BYTES = 32 << 20  # of an answer
_MOST_CHECKED_BYTES = 1 << 30
_MOST_CHECKSUMS = 1 << 16


class MemberLogService(ReplicationServiceServicer):
    """Checksums and bytes of the member's log."""

    def __init__(self, log: MemberLog) -> None:
        self._log = log

    async def ChecksumLog(  # noqa: N802 - gRPC's name
        self, request: pb.ChecksumLogRequest, context: _Context
    ) -> pb.ChecksumLogResponse:
        begin, end, step = request.begin_offset, request.end_offset, request.step_bytes
        _require_at_most(end - begin, _MOST_CHECKED_BYTES)
        if step < 1 or (end - begin) // step > _MOST_CHECKSUMS:
            raise ArgumentIllegalError(f"step_bytes is {step}: it must give 1 to {_MOST_CHECKSUMS} checksums")
        return pb.ChecksumLogResponse(crcs=await self._log.checksums(begin, end, step))

    async def FetchLog(  # noqa: N802
        self, request: pb.FetchLogRequest, context: _Context
    ) -> pb.FetchLogResponse:
        begin, end = request.begin_offset, request.end_offset
        _require_at_most(end - begin, _MOST_BYTES)
        return pb.FetchLogResponse(data=await self._log.read(begin, end))


def _require_at_most(size: int, most: int) -> None:
    if size > most:
        raise ArgumentIllegalError(f"the range has {size} bytes; at most {most} are allowed", argument="end_offset")
