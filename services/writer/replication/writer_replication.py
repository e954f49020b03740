"""WriterReplication: the writer's part in replication during its epoch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from tidemark.errors import (
    ArgumentIllegalError,
    InSyncReplicasNotEnoughError,
    NotLeaderError,
    OffsetTooSmallError,
    StaleEpochError,
    StoreError,
)
from tidemark.replication.group_state import GroupState
from tidemark.replication.group_store import GroupStore
from tidemark.replication.member import Member
from tidemark.store.batch_journal import BatchRange
from tidemark.store.multi_path_mapped_file_queue import open_log

from ..batch.batch import PutStatus
from ..config import WriterSettings
from ..group_settings import ReplicationMode
from ..log.flusher import WrittenGroup
from ..log.open_store import OpenStore
from ..log.replicated_log import Commit
from .copied_files import FileChanges, copied_files
from .hand_over import HandOver
from .messages import Acknowledged, Hello, Welcome
from .piece import Piece
from .recent_pieces import RecentPieces
from .replica_admission import ReplicaAdmission
from .replica_lags import Lag
from .replica_stream import ReplicaStream
from .replicated_commits import ReplicatedCommits
from .set_watch import SetWatch
from .stored_piece import StoredPieces

log = structlog.get_logger()


class WriterReplication:
    """Replication for one epoch of this member. Lives on the event loop, but the log calls it from its threads.

    member      this member, with its log's end and epochs
    state       of the group, which makes this member the writer
    on_stale    set after the construction; called if another epoch has begun, so that this writer must stop
    in_flight_bytes  set after the construction; returns the bytes of accepted and unanswered batches
    release_to  gives up the role of the writer for a member, by its identity
    on_handed_over  called when another member has become the writer, and this one is to follow it
    """

    def __init__(
        self,
        settings: WriterSettings,
        store: OpenStore,
        member: Member,
        state: GroupState,
        group_store: GroupStore,
        *,
        release_to: Callable[[str], Awaitable[None]],
        on_handed_over: Callable[[], None],
    ) -> None:
        is_sync = settings.replication is ReplicationMode.SYNC
        self.timeout_s = settings.replica_timeout_ms / 1000 if is_sync else None
        self.streams: dict[str, ReplicaStream] = {}  # by identity
        self.epoch = state.epoch
        self._settings = settings
        self._store = store
        self._identity = member.identity
        self.on_stale: Callable[[StoreError], None] = lambda _: None
        self.in_flight_bytes: Callable[[], int] = lambda: 0
        self._loop = asyncio.get_running_loop()
        self._is_sync = is_sync
        self._commit_groups: Commit = lambda *_: None
        self._commits = ReplicatedCommits(member.promote(state), member.identity, self._commit)
        self._epochs = member.epochs
        self._pieces = RecentPieces(member.end, most_bytes=settings.replica_buffer_bytes, on_added=self._wake_soon)
        self._files = copied_files(store.paths)
        # The newest stream of each member that was seen in this epoch; None: it was welcomed since. An earlier one may
        # still deliver an acknowledgement, of a folder that is gone.
        self._newest: dict[str, ReplicaStream | None] = {}
        self._changes = 0  # of files, for which callers wait
        self._wake_planned = False
        self._watching: asyncio.Task[None] | None = None
        self._admission = ReplicaAdmission(settings, store.segments.size, member.identity)
        self._set_watch = SetWatch(
            self._commits,
            self.streams,
            group_store,
            identity=member.identity,
            epoch_start=member.epoch_start,
            allowed_lag_s=settings.replica_lag_ms / 1000,
            end=lambda: self.end,
            drop=self._drop,
            on_changed=self._wake,
        )
        self._hand_over = HandOver(
            self._commits,
            group_store,
            end=lambda: self.end,
            share_files=self.share_files,
            release_to=release_to,
            on_done=on_handed_over,
        )

    # -- the log's calls --------------------------------------------------------------------------------------------

    def attach(self, commit: Commit) -> None:
        """Commit by *commit* from now on; see `ReplicatedLog`."""
        self._commit_groups = commit

    def require_enough(self) -> None:
        """Raise NotLeaderError or InSyncReplicasNotEnoughError if no append may be accepted now."""
        if self._hand_over.successor is not None:
            raise NotLeaderError("this writer hands over its role", writer=self._hand_over.successor, epoch=self.epoch)
        if not self._commits.has_enough:
            known = self._commits.known
            raise InSyncReplicasNotEnoughError(
                f"{len(known.in_sync)} members are in sync, and {known.min_in_sync} are needed (TIDEMARK_MIN_IN_SYNC): "
                "try again when a replica has caught up",
                in_sync=len(known.in_sync),
                min_in_sync=known.min_in_sync,
                retry_after_ms=self._settings.retry_after_ms,
            )

    def wrote(self, start: int, data: memoryview, batches: Sequence[BatchRange], store_timestamp: int) -> None:
        """Send whole *batches*, written at physical offset *start*."""
        self._pieces.add(Piece(start, bytes(data), tuple(batches), 0, store_timestamp))

    def rolled(self, start: int, size: int) -> None:
        """Send that a blank record of *size* bytes at *start* ends a file."""
        self._pieces.add(Piece(start, b"", (), size))

    def flushed(self, written: WrittenGroup) -> None:
        """Note that the disk of the writer has *written* and everything before it."""
        self._commits.flushed(written)

    def _commit(self, end: int, groups: list[WrittenGroup]) -> None:
        """Commit *groups*; ReplicatedCommits calls it, in any thread."""
        self._pieces.committed(end)
        is_alone = self._is_sync and len(self._commits.known.in_sync) == 1
        self._commit_groups(end, groups, PutStatus.SLAVE_NOT_AVAILABLE if is_alone else PutStatus.PUT_OK)
        self._wake_soon()

    def _wake_soon(self) -> None:
        """Wake the streams. Safe from any thread."""
        if self.streams and not self._wake_planned:
            self._wake_planned = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._wake_planned = False
        for stream in self.streams.values():
            stream.awake.set()

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Commit the bytes on this disk if no replica is needed, and begin to watch the set."""
        self._commits.acknowledged(self._identity, self._pieces.end)
        self._watching = asyncio.create_task(self._watch_set())

    async def _watch_set(self) -> None:
        try:
            await self._set_watch.run(lambda: self._is_sync and not self._hand_over.has_appointed)
        except StaleEpochError as error:
            self.on_stale(error)

    async def stop(self) -> None:
        """End all streams."""
        if self._watching is not None:
            self._watching.cancel()
        for stream in self.streams.values():
            stream.end()

    @property
    def identity(self) -> str:
        """Identity of this member."""
        return self._identity

    @property
    def known(self) -> GroupState:
        """The group's state."""
        return self._commits.known

    @property
    def is_handing_over(self) -> bool:
        """True from the order to hand over on, unless it fails."""
        return self._hand_over.successor is not None

    @property
    def lags(self) -> dict[str, Lag]:
        """How far each connected replica was behind at the last look, by the member's name."""
        return self._set_watch.lags

    @property
    def set_changes(self) -> dict[str, int]:
        """Number of members that have joined and left the set in sync."""
        return self._set_watch.changes

    def lag_s(self, identity: str) -> float:
        """Return for how long a replica has been behind the log's end, at most somewhat more than the allowed lag."""
        return self._set_watch.lag_s(identity)

    @property
    def has_enough(self) -> bool:
        """True if enough members are in sync to commit."""
        return self._commits.has_enough

    @property
    def committed(self) -> int:
        """Physical offset below which every byte is committed."""
        return self._commits.committed

    @property
    def end(self) -> int:
        """Physical offset of the log's end."""
        return self._pieces.end

    def synced_end(self, identity: str) -> int:
        """Return the physical offset below which a member has synced everything."""
        return self._commits.synced_end(identity)

    # -- streams ----------------------------------------------------------------------------------------------------

    def needed(self) -> int:
        """Return the physical offset from which another member may still have to copy the log. Thread-safe.

        A member that was not seen in this epoch, or was just welcomed, may need the whole log.
        """
        newest = (self._newest.get(name) for name in self._settings.other_members)
        return min((0 if stream is None else stream.copied for stream in newest), default=self.end)

    def welcome(self, hello: Hello) -> Welcome:
        """Return the answer to a replica.

        Raises:
            StoreContradictionError: it belongs to another group, or its files have another size.
            StoreLockedError: another stream has its identity, because a directory was copied.
            StaleEpochError: it has promised a later epoch, so this writer stops.
        """
        known = self._commits.known
        self._admission.require_same_group(hello, known.group)
        self._admission.require_single(hello, self.streams)
        if hello.promised_epoch > self.epoch:
            error = StaleEpochError(
                f"member {hello.member} has promised epoch {hello.promised_epoch}, and this writer has {self.epoch}",
                epoch=self.epoch,
                newer_epoch=hello.promised_epoch,
            )
            self.on_stale(error)
            raise error
        self._newest[hello.member] = None  # its log may be shorter than before, or a new one
        return Welcome(known.group, self.epoch, self._epochs, self._store.segments.log.min_offset)

    def open_stream(self, hello: Hello, start: int) -> ReplicaStream:
        """Return the stream that sends a welcomed replica the log from physical offset *start* on.

        Raises:
            OffsetTooSmallError: the log begins later.
            StoreLockedError: as `welcome`.
        """
        log_files = self._store.segments.log
        if start < log_files.min_offset:
            raise OffsetTooSmallError(
                f"replica {hello.member} needs the log from {start} on, and it begins at {log_files.min_offset}: "
                "start the replica with an empty folder",
                min_offset=log_files.min_offset,
                max_offset=self._pieces.end,
            )
        if start > self._pieces.end:
            raise ArgumentIllegalError(
                f"replica {hello.member} asks for {start}, beyond the log's end {self._pieces.end}", argument="start"
            )
        self._admission.require_single(hello, self.streams)
        stream = ReplicaStream(
            hello,
            start,
            self._pieces,
            self._commits,
            FileChanges(self._files),
            StoredPieces(open_log(self._store.paths.log_folders, self._store.segments.size)),
            changes=lambda: self._changes,
            needed=self.needed,
        )
        self.streams[hello.identity] = stream
        self._newest[hello.member] = stream
        log.info("replica_connected", member=hello.member, start=start, end=self._pieces.end)
        return stream

    def acknowledge(self, stream: ReplicaStream, acknowledged: Acknowledged) -> None:
        """Note a message of a replica."""
        stream.acknowledge(acknowledged)
        self._commits.acknowledged(stream.identity, min(acknowledged.end, self._pieces.end))
        has_all = acknowledged.end >= self._pieces.end
        if self._is_sync and has_all and stream.identity not in self._commits.known.in_sync:
            self._set_watch.wake()

    def close_stream(self, stream: ReplicaStream) -> None:
        """Forget a stream that has ended."""
        stream.end()
        if self.streams.get(stream.identity) is stream:
            del self.streams[stream.identity]
            log.info("replica_disconnected", member=stream.member, synced=stream.acknowledged.end)

    def _drop(self, stream: ReplicaStream) -> None:
        """Forget a stream whose replica is silent, so that the replica can open another one."""
        self.close_stream(stream)
        stream.cancel()

    # -- files and hand-over ------------------------------------------------------------------------------------------

    async def share_files(self) -> None:
        """Wait until the members that are waited for have the small files as they are now, for a limited time."""
        self._changes += 1
        changes = self._changes
        self._wake()
        deadline = self._loop.time() + self._settings.replica_timeout_ms / 1000
        while not all(stream.has_files(changes) for stream in self._waited_for()):
            if self._loop.time() > deadline:
                log.warning("files_not_shared", members=[stream.member for stream in self._waited_for()])
                return
            await asyncio.sleep(0.005)

    def _waited_for(self) -> list[ReplicaStream]:
        members = self._commits.waited_for
        return [stream for stream in self.streams.values() if stream.identity in members]

    async def hand_over(self, name: str) -> int:
        """Make the member *name* the writer, once it has everything; return the epoch that ends.

        Raises:
            ArgumentIllegalError: it is not in sync, or another hand-over is under way.
            DeadlineExceededError: as `HandOver.to`.
        """
        stream = next((one for one in self._waited_for() if one.member == name), None)
        if stream is None or stream.identity not in self._commits.known.in_sync:
            raise ArgumentIllegalError(
                f"member {name!r} is not in sync, so it cannot become the writer", argument="member"
            )
        await self._hand_over.to(stream, self._settings.members.get(name, ""), self.in_flight_bytes)
        return self.epoch
