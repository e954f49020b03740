"""Replica: follows the writer of the group, and copies its log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import structlog

from tidemark.errors import (
    DeadlineExceededError,
    FlushFailedError,
    ReplicaDivergedError,
    StoreContradictionError,
    StoreError,
    UnavailableError,
)

from ..config import WriterSettings
from .concurrent_works import until_first_ends
from .disk_thread import DiskThread
from .messages import HEARTBEAT_S, SILENCE_S, Acknowledged, Config, Hello, TakeOver, Told, Welcome
from .piece import Piece
from .replica_disk import Applied, ReplicaDisk

log = structlog.get_logger()

_PAUSE_S = 0.2  # between two looks for the writer
_MOST_WAITING_BYTES = 64 << 20  # received and not yet written; beyond, the stream is not read
_FINAL = (FlushFailedError, ReplicaDivergedError, StoreContradictionError)  # a further try cannot help


class WriterLink(Protocol):
    """A stream to a member that may be the writer. All methods raise StoreError."""

    async def send(self, message: Hello | int | Acknowledged, /) -> None:
        """Send a message; a number is the physical offset to start from."""

    async def receive(self) -> Told:
        """Return the next message."""


FindWriter = Callable[[int], Awaitable[str]]
Connect = Callable[[str], AbstractAsyncContextManager[WriterLink]]


class Replica:
    """A member that copies the writer's log. Lives on the event loop; its disk work runs in one thread.

    group        returns the name of the group that this member belongs to; "" if it has none yet
    find_writer  returns the address of the writer of this epoch or a later one; "" if no member says that it is that
    connect      opens a stream to the member at an address
    """

    def __init__(
        self,
        settings: WriterSettings,
        disk: ReplicaDisk,
        segment_size: int,
        group: Callable[[], str],
        find_writer: FindWriter,
        connect: Connect,
    ) -> None:
        self.writer = ""  # address of the member that was last followed
        self.epoch = disk.member.promised
        self.applied = Applied(disk.acknowledged, disk.member.confirm)
        self.fault = ""  # why the last attempt to follow a writer failed; "" if it did not
        self.needed = 0  # another member may still have to copy the log from this physical offset on
        self._lost_at: float | None = asyncio.get_running_loop().time()
        self._settings = settings
        self._disk = disk
        self._segment_size = segment_size
        self._group = group
        self._find_writer = find_writer
        self._connect = connect
        self._thread = DiskThread("replica-disk")
        self._received: list[Piece | Config] = []
        self._waiting_bytes = 0
        self._committed = 0
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._is_written = asyncio.Event()
        self._takes_over = False
        self._told: dict[str, str] = {}  # by address, the reason that was logged last

    @property
    def log_end(self) -> int:
        """Physical offset of the log's end."""
        return self._disk.member.end

    @property
    def promised(self) -> int:
        """The greatest epoch that this member has promised."""
        return self._disk.member.promised

    @property
    def lost_s(self) -> float:
        """Seconds since the stream from a writer ended; 0 while there is one."""
        return 0.0 if self._lost_at is None else asyncio.get_running_loop().time() - self._lost_at

    async def run(self) -> None:
        """Follow the writer until it hands its role to this member.

        Raises:
            ReplicaDivergedError, StoreContradictionError: this member cannot follow the writer.
            FlushFailedError: the disk fails.
        """
        while True:
            address = await self._find_writer(self._disk.member.promised)
            if address:
                await self._try(address)
            if self._takes_over:
                return
            await asyncio.sleep(_PAUSE_S)

    async def _try(self, address: str) -> None:
        """Follow the writer at *address* until its stream ends."""
        try:
            await self._follow(address)
        except _FINAL:
            raise
        except StoreError as error:
            self.fault = error.message
            if self._told.get(address) != error.message:  # the same reason is logged once
                self._told[address] = error.message
                log.info("writer_not_followed", address=address, reason=error.message)

    async def _follow(self, address: str) -> None:
        """Follow the member at *address* until its stream ends. Raises StoreError."""
        async with self._connect(address) as link:
            member = self._disk.member
            await link.send(
                Hello(
                    self._group(),
                    self._settings.member,
                    member.identity,
                    member.promised,
                    member.end,
                    member.confirm,
                    self._segment_size,
                )
            )
            told = await self._next(link)
            if not isinstance(told.message, Welcome):
                raise UnavailableError(f"{address} sent {type(told.message).__name__}, not a welcome")
            start = await self._thread.run(self._disk.follow, told.message, told.end)
            # An acknowledgement of an earlier stream may cover bytes that are cut now.
            self.applied = Applied(self._disk.acknowledged, self._disk.member.confirm)
            self.writer, self.epoch = address, told.message.epoch
            self._lost_at = None
            log.info("writer_followed", address=address, epoch=self.epoch, start=start, end=told.end)
            await link.send(start)
            self._received, self._waiting_bytes, self._committed = [], 0, told.committed
            self._has_room.set()
            self._is_written.set()
            try:
                await until_first_ends(self._read(link), self._write(link), self._report(link), self._sync_confirm())
            finally:
                self._lost_at = asyncio.get_running_loop().time()

    async def _next(self, link: WriterLink) -> Told:
        try:
            return await asyncio.wait_for(link.receive(), SILENCE_S)
        except TimeoutError:
            raise DeadlineExceededError(f"the writer has been silent for {SILENCE_S:g} s") from None

    async def _read(self, link: WriterLink) -> None:
        while True:
            told = await self._next(link)
            self._committed, self.needed, self.fault = told.committed, told.needed, ""
            if isinstance(told.message, TakeOver):
                await self._is_written.wait()
                self._takes_over = True
                return
            if isinstance(told.message, Piece | Config):
                self._is_written.clear()
                self._received.append(told.message)
                self._waiting_bytes += _size(told.message)
                if self._waiting_bytes > _MOST_WAITING_BYTES:
                    self._has_room.clear()
            self._changed.set()
            await self._has_room.wait()

    async def _write(self, link: WriterLink) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            received, self._received = self._received, []
            self.applied = await self._thread.run(self._disk.apply, received, self._committed)
            self._waiting_bytes -= sum(map(_size, received))
            self._has_room.set()
            if not self._received:
                self._is_written.set()
            if received:
                await link.send(self.applied.acknowledged)

    async def _report(self, link: WriterLink) -> None:
        """Report to the writer at intervals, however busy the disk is."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await link.send(self.applied.acknowledged)

    async def _sync_confirm(self) -> None:
        """Make the confirm offset durable at intervals."""
        while True:
            await asyncio.sleep(self._settings.confirm_interval_ms / 1000)
            await self._thread.run(self._disk.make_confirm_durable)

    async def close(self) -> None:
        """Sync and close the files, after `run` has ended or was cancelled."""
        await self._thread.close(self._disk.close)


def _size(received: Piece | Config) -> int:
    return len(received.data if isinstance(received, Piece) else received.content)
