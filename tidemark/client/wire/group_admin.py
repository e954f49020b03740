"""ReplicationGroup: the members of a replication group, and the orders of its operator."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tidemark.client.errors.address_faults import members_of
from tidemark.client.wire.channel import default_address, open_channel
from tidemark.client.wire.unary_call import call_writer
from tidemark.errors import ArgumentIllegalError, DeadlineExceededError, StoreError
from tidemark.tls.credentials import Credentials
from tidemark.v1 import replication_pb2 as pb
from tidemark.v1.replication_pb2_grpc import ReplicationServiceStub

_POLL_S = 0.05
_POLL_TIMEOUT_S = 1.0
_WRITER = pb.DescribeGroupResponse.ROLE_WRITER


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member, as it describes itself and as the writer sees it.

    role           "writer", "replica", or "unreachable"
    is_in_sync     the writer waits for it
    lag_bytes      bytes of the writer's log that it has not synced; None if the writer or the member is unknown
    lag_s          for how long it has been behind; None as above
    epoch          the greatest that it has promised
    fault          why it cannot be asked or, as a replica, cannot follow the writer; "" if there is none
    """

    name: str
    address: str
    role: str
    is_in_sync: bool
    end_offset: int | None
    synced_offset: int | None
    committed_offset: int | None
    lag_bytes: int | None
    lag_s: float | None
    epoch: int | None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The group at one moment. writer: name; None if no member that answers is the writer."""

    store_name: str
    mode: str
    group: str
    epoch: int
    writer: str | None
    min_in_sync: int
    members: tuple[GroupMember, ...]

    @property
    def in_sync(self) -> int:
        """Number of members in sync."""
        return sum(member.is_in_sync for member in self.members)


class ReplicationGroup:
    """The group of one member. Every method raises the StoreError of that member's reason, or WriterUnreachableError.

    address      of any member's writer service, or of several, separated by |. Default: TIDEMARK_WRITER_ADDRESS, then
                 127.0.0.1:8081
    credentials  see `Credentials`; default: from the environment
    """

    def __init__(
        self, address: str | None = None, *, timeout_s: float = 10.0, credentials: Credentials | None = None
    ) -> None:
        self._addresses = members_of(address or default_address())
        self._credentials = credentials or Credentials.from_environment()
        self._timeout_s = timeout_s

    def status(self) -> GroupStatus:
        """Ask all members of the group."""
        asked = self._asked()
        others = [member for member in asked.members if member.name != asked.member]
        answers: dict[str, Any] = {asked.member: asked}
        with ThreadPoolExecutor(max(1, len(others))) as pool:
            described = pool.map(self._described, (other.address for other in others))
            answers.update(zip((other.name for other in others), described, strict=True))
        found = [answer for answer in answers.values() if not isinstance(answer, StoreError)]
        newest = max(found, key=lambda answer: (answer.epoch, answer.role == _WRITER, answer.revision))
        is_writer_known = newest.role == _WRITER
        return GroupStatus(
            newest.store_name,
            newest.mode,
            newest.group,
            newest.epoch,
            newest.member if is_writer_known else None,
            newest.min_in_sync,
            tuple(_member(one, answers[one.name], newest if is_writer_known else None) for one in newest.members),
        )

    def _asked(self) -> Any:
        """Return the description of the first member that answers."""
        *others, last = self._addresses
        for address in others:
            answer = self._described(address)
            if not isinstance(answer, StoreError):
                return answer
        return self._call(last, "DescribeGroup", pb.DescribeGroupRequest())

    def _described(self, address: str) -> Any:
        """Return the description of the member at *address*, or the StoreError for which there is none."""
        try:
            return self._call(address, "DescribeGroup", pb.DescribeGroupRequest())
        except StoreError as error:
            return error

    def promote(self, member: str, *, stopped_writer: str = "", unclean: bool = False) -> int:
        """Make *member* the writer after the old one was stopped; return its epoch, once it serves.

        stopped_writer  name of the old writer, as a confirmation
        unclean         also if *member* may lack committed messages, which are lost then
        """
        address = self._address_of(member)
        self._call(address, "Promote", pb.PromoteRequest(stopped_writer=stopped_writer, unclean=unclean))
        return self._epoch_of(member, address)

    def hand_over(self, member: str) -> int:
        """Let the running writer hand its role to *member*; return the new epoch, once *member* serves."""
        status = self.status()
        if status.writer is None:
            raise ArgumentIllegalError("no member that answers is the writer: use promote", argument="member")
        addresses = {one.name: one.address for one in status.members}
        self._call(addresses[status.writer], "HandOver", pb.HandOverRequest(member=member))
        return self._epoch_of(member, addresses[member])

    def _epoch_of(self, member: str, address: str) -> int:
        """Wait until *member* is the writer, and return its epoch. Raises DeadlineExceededError."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            with contextlib.suppress(StoreError):  # it restarts its server
                answer = self._call(address, "DescribeGroup", pb.DescribeGroupRequest(), timeout_s=_POLL_TIMEOUT_S)
                if answer.role == _WRITER:
                    return int(answer.epoch)
            if time.monotonic() > deadline:
                raise DeadlineExceededError(f"member {member} is not the writer yet: ask for the group's status")
            time.sleep(_POLL_S)

    def _address_of(self, name: str) -> str:
        asked = self._asked()
        for member in asked.members:
            if member.name == name:
                return str(member.address)
        names = ", ".join(member.name for member in asked.members)
        raise ArgumentIllegalError(f"the group has no member {name!r}; its members are {names}", argument="member")

    def _call(self, address: str, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        channel = open_channel(address, self._credentials)
        try:
            call = getattr(ReplicationServiceStub(channel), method)
            return call_writer(call, request, address, self._credentials, timeout_s=timeout_s or self._timeout_s)
        finally:
            channel.close()


def _member(seen: Any, answer: Any, writer: Any) -> GroupMember:
    """Return a member. seen: what the newest answer says of it; answer: its own; writer: the writer's, or None."""
    if isinstance(answer, StoreError):
        return GroupMember(
            seen.name, seen.address, "unreachable", seen.in_sync, None, None, None, None, None, None, answer.message
        )
    has_lag = writer is not None
    return GroupMember(
        seen.name,
        seen.address,
        "writer" if answer.role == _WRITER else "replica",
        seen.in_sync,
        answer.end_offset,
        answer.synced_offset,
        answer.committed_offset,
        max(0, writer.end_offset - answer.synced_offset) if has_lag else None,
        seen.lag_seconds if has_lag and seen.lag_seconds >= 0 else None,
        answer.promised_epoch,
        answer.fault,
    )
