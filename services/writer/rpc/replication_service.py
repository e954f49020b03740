"""ReplicationService: streams to replicas, and what an operator asks of the group's members."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn

import grpc

from tidemark.errors import ArgumentIllegalError, DeadlineExceededError, NotLeaderError
from tidemark.replication.group_state import GroupState
from tidemark.replication.member_names import name_of
from tidemark.replication.stored_state import encode_state
from tidemark.v1 import replication_pb2 as pb

from ..config import WriterSettings
from ..replication.member_log import MemberLog
from ..replication.messages import SILENCE_S, Acknowledged, Hello, Told
from ..replication.replica import Replica
from ..replication.replica_disk import ReplicaDisk
from ..replication.replica_stream import ReplicaStream
from ..replication.writer_replication import WriterReplication
from .member_log_service import MemberLogService
from .replication_messages import decode_request, encode_response

_Context = grpc.aio.ServicerContext[Any, Any]
_Requests = AsyncIterator[pb.ReplicateRequest]
_Role = pb.DescribeGroupResponse
_UNKNOWN = -1


class WriterReplicationService(MemberLogService):
    """The service of the group's writer."""

    def __init__(self, settings: WriterSettings, replication: WriterReplication, member_log: MemberLog) -> None:
        super().__init__(member_log)
        self._settings = settings
        self._replication = replication

    async def Replicate(  # noqa: N802 - gRPC's name
        self, request_iterator: _Requests, context: _Context
    ) -> AsyncIterator[pb.ReplicateResponse]:
        requests = aiter(request_iterator)
        hello = await _next(requests)
        if not isinstance(hello, Hello):
            raise ArgumentIllegalError("the first message of a replica must be its hello", argument="kind")
        replication = self._replication
        welcome = replication.welcome(hello)
        yield encode_response(Told(welcome, replication.committed, replication.end))
        start = await _next(requests)
        if not isinstance(start, int):
            raise ArgumentIllegalError("the second message of a replica must be its start", argument="kind")
        stream = replication.open_stream(hello, start)
        if (call := asyncio.current_task()) is not None:
            stream.cancel = call.cancel
        reading = asyncio.create_task(self._read(requests, stream))
        try:
            async for told in stream.messages():
                yield encode_response(told)
        finally:
            reading.cancel()
            replication.close_stream(stream)

    async def _read(self, requests: _Requests, stream: ReplicaStream) -> None:
        try:
            async for request in requests:
                message = decode_request(request)
                if isinstance(message, Acknowledged):
                    self._replication.acknowledge(stream, message)
        finally:
            stream.end()

    async def DescribeGroup(  # noqa: N802
        self, request: pb.DescribeGroupRequest, context: _Context
    ) -> pb.DescribeGroupResponse:
        replication = self._replication
        response = _described(self._settings, replication.known)
        response.role = _Role.ROLE_WRITER
        response.identity = replication.identity
        response.promised_epoch = replication.epoch
        response.end_offset, response.committed_offset = replication.end, replication.committed
        response.synced_offset = replication.synced_end(replication.identity)
        known = {stream.member: stream for stream in replication.streams.values()}
        for member in response.members:
            if member.is_writer:
                member.synced_offset = response.synced_offset
                member.lag_seconds = 0
            elif (stream := known.get(member.name)) is not None:
                member.identity = stream.identity
                member.synced_offset = replication.synced_end(stream.identity)
                member.lag_seconds = replication.lag_s(stream.identity)
                member.free_disk_bytes = stream.acknowledged.free_disk_bytes
        return response

    async def Promote(  # noqa: N802
        self, request: pb.PromoteRequest, context: _Context
    ) -> pb.PromoteResponse:
        raise ArgumentIllegalError(f"member {self._settings.member} is the writer already", argument="member")

    async def HandOver(  # noqa: N802
        self, request: pb.HandOverRequest, context: _Context
    ) -> pb.HandOverResponse:
        return pb.HandOverResponse(epoch=await self._replication.hand_over(request.member))


class ReplicaReplicationService(MemberLogService):
    """The service of a replica. promote: makes it the writer, and returns the epoch."""

    def __init__(
        self,
        settings: WriterSettings,
        replica: Replica,
        disk: ReplicaDisk,
        state: Callable[[], GroupState | None],
        promote: Callable[[str, bool], Awaitable[int]],
        member_log: MemberLog,
    ) -> None:
        super().__init__(member_log)
        self._settings = settings
        self._replica = replica
        self._disk = disk
        self._state = state
        self._promote = promote

    def refuse(self) -> NoReturn:
        """Raise NotLeaderError with the writer's address."""
        raise NotLeaderError(
            f"member {self._settings.member} is a replica; its writer is {self._replica.writer or 'not known'}",
            writer=self._replica.writer,
            epoch=self._replica.epoch,
        )

    async def Replicate(  # noqa: N802
        self, request_iterator: _Requests, context: _Context
    ) -> AsyncIterator[pb.ReplicateResponse]:
        self.refuse()
        yield

    async def DescribeGroup(  # noqa: N802
        self, request: pb.DescribeGroupRequest, context: _Context
    ) -> pb.DescribeGroupResponse:
        response = _described(self._settings, self._state())
        member, applied = self._disk.member, self._replica.applied
        response.role = _Role.ROLE_REPLICA
        response.identity = member.identity
        response.promised_epoch = member.promised
        response.end_offset, response.synced_offset = member.end, applied.acknowledged.end
        response.committed_offset = applied.confirm
        response.follows_writer = self._replica.lost_s == 0
        response.fault = self._replica.fault
        return response

    async def Promote(  # noqa: N802
        self, request: pb.PromoteRequest, context: _Context
    ) -> pb.PromoteResponse:
        return pb.PromoteResponse(epoch=await self._promote(request.stopped_writer, request.unclean))

    async def HandOver(  # noqa: N802
        self, request: pb.HandOverRequest, context: _Context
    ) -> pb.HandOverResponse:
        self.refuse()


async def _next(requests: _Requests) -> Hello | int | Acknowledged:
    try:
        return decode_request(await asyncio.wait_for(anext(requests), SILENCE_S))
    except TimeoutError:
        raise DeadlineExceededError(f"the replica has been silent for {SILENCE_S:g} s") from None
    except StopAsyncIteration:
        raise ArgumentIllegalError("the replica has ended its stream", argument="kind") from None


def _described(settings: WriterSettings, state: GroupState | None) -> pb.DescribeGroupResponse:
    response = pb.DescribeGroupResponse(
        store_name=settings.store_name,
        mode=settings.replication,
        member=settings.member,
        min_in_sync=settings.min_in_sync,
    )
    in_sync, eligible, writer = frozenset[str](), frozenset[str](), None
    if state is not None:
        response.group, response.epoch, response.revision = state.group, state.epoch, state.revision
        response.min_in_sync = state.min_in_sync
        response.state = encode_state(state)
        in_sync, eligible = frozenset(map(name_of, state.in_sync)), frozenset(map(name_of, state.eligible))
        writer = None if state.writer is None else name_of(state.writer)
    for name, address in settings.members.items():
        response.members.add(
            name=name,
            address=address,
            in_sync=name in in_sync,
            eligible=name in eligible,
            is_writer=name == writer,
            synced_offset=_UNKNOWN,
            lag_seconds=_UNKNOWN,
        )
    return response
