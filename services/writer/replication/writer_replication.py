"""WriterReplication: the writer's part in replication during its epoch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import structlog

from tidemark.errors import (
    ArgumentIllegalError,
    DeadlineExceededError,
    InSyncReplicasNotEnoughError,
    NotLeaderError,
    OffsetTooSmallError,
    StaleEpochError,
    StoreContradictionError,
    StoreError,
    StoreLockedError,
)
from tidemark.replication.group_state import GroupState
from tidemark.replication.group_store import GroupStore
from tidemark.replication.member import Member
from tidemark.replication.member_names import folder_of, name_of
from tidemark.store.batch_journal import BatchRange
from tidemark.store.multi_path_mapped_file_queue import open_log

from ..batch.batch import PutStatus
from ..config import WriterSettings
from ..group_settings import ReplicationMode
from ..log.flusher import WrittenGroup
from ..log.open_store import OpenStore
from ..log.replicated_log import Commit
from .copied_files import FileChanges, copied_files
from .messages import SILENCE_S, Acknowledged, Hello, Welcome
from .piece import Piece
from .recent_pieces import RecentPieces
from .replica_stream import ReplicaStream
from .replicated_commits import ReplicatedCommits
from .stored_piece import StoredPieces

log = structlog.get_logger()

_LOOK_S = 0.1  # between two looks at the set of members in sync
_HAND_OVER_S = 5.0


class _End(NamedTuple):
    """The log's end at a time of the event loop."""

    time_s: float
    offset: int


class Lag(NamedTuple):
    """How far a connected replica is behind the log's end, and for how long."""

    bytes: int
    seconds: float


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
        self.lags: dict[str, Lag] = {}  # by member's name, as of the last look; replaced, not changed
        self.set_changes = {"joined": 0, "left": 0}
        self.epoch = state.epoch
        self._settings = settings
        self._store = store
        self._identity = member.identity
        self._group_store = group_store
        self.on_stale: Callable[[StoreError], None] = lambda _: None
        self.in_flight_bytes: Callable[[], int] = lambda: 0
        self._release_to = release_to
        self._on_handed_over = on_handed_over
        self._loop = asyncio.get_running_loop()
        self._is_sync = is_sync
        self._commit_groups: Commit = lambda *_: None
        self._commits = ReplicatedCommits(member.promote(state), member.identity, self._commit)
        self._epochs, self._epoch_start = member.epochs, member.epoch_start
        self._pieces = RecentPieces(member.end, most_bytes=settings.replica_buffer_bytes, on_added=self._wake_soon)
        self._files = copied_files(store.paths)
        self._ends: deque[_End] = deque()
        self._successor: str | None = None  # address of the coming writer
        self._appointing: asyncio.Task[None] | None = None
        self._copied: dict[str, int] = {}  # the last acknowledged end of each member's log
        self._has_appointed = False  # the group's state names the coming writer, and changes by its election only
        self._changes = 0  # of files, for which callers wait
        self._wake_planned = False
        self._looking: asyncio.Task[None] | None = None

    # -- the log's calls --------------------------------------------------------------------------------------------

    def attach(self, commit: Commit) -> None:
        """Commit by *commit* from now on; see `ReplicatedLog`."""
        self._commit_groups = commit

    def require_enough(self) -> None:
        """Raise NotLeaderError or InSyncReplicasNotEnoughError if no append may be accepted now."""
        if self._successor is not None:
            raise NotLeaderError("this writer hands over its role", writer=self._successor, epoch=self.epoch)
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
        self._looking = asyncio.create_task(self._look_after_set())

    async def stop(self) -> None:
        """End all streams."""
        if self._looking is not None:
            self._looking.cancel()
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
        return self._successor is not None

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

        A member that has not acknowledged anything in this epoch may need the whole log.
        """
        return min((self._copied.get(name, 0) for name in self._settings.other_members), default=self.end)

    def welcome(self, hello: Hello) -> Welcome:
        """Return the answer to a replica.

        Raises:
            StoreContradictionError: it belongs to another group, or its files have another size.
            StoreLockedError: another stream has its identity, because a directory was copied.
            StaleEpochError: it has promised a later epoch, so this writer stops.
        """
        known = self._commits.known
        if hello.member not in self._settings.members:
            raise StoreContradictionError(
                f"{hello.member!r} is not a member of the group, which has {', '.join(self._settings.members)}: set "
                "TIDEMARK_GROUP_MEMBERS alike on all members",
                setting="TIDEMARK_GROUP_MEMBERS",
            )
        if hello.group and hello.group != known.group:
            raise StoreContradictionError(
                f"member {hello.member} belongs to group {hello.group}, and this one to {known.group}: give it an "
                "empty folder",
                setting="TIDEMARK_GROUP_MEMBERS",
            )
        if hello.segment_size != self._store.segments.size:
            raise StoreContradictionError(
                f"CommitLog files of member {hello.member} have {hello.segment_size} bytes, and those of the writer "
                f"{self._store.segments.size}: give it the writer's commit_log_segment_size_bytes",
                setting="commit_log_segment_size_bytes",
            )
        self._require_single(hello)
        if hello.promised_epoch > self.epoch:
            error = StaleEpochError(
                f"member {hello.member} has promised epoch {hello.promised_epoch}, and this writer has {self.epoch}",
                epoch=self.epoch,
                newer_epoch=hello.promised_epoch,
            )
            self.on_stale(error)
            raise error
        return Welcome(known.group, self.epoch, self._epochs, self._store.segments.log.min_offset)

    def _require_single(self, hello: Hello) -> None:
        """Raise StoreLockedError if the folder of the member is a copy of another one's, or it is connected twice."""
        if hello.identity in self.streams:
            raise StoreLockedError(
                f"member {hello.member} is connected already: an earlier stream of it ends within {SILENCE_S:g} s, "
                "unless two processes use its folder"
            )
        folder = folder_of(hello.identity)
        same = next((one for one in (self._identity, *self.streams) if folder_of(one) == folder), None)
        if same is not None:
            raise StoreLockedError(
                f"the folder of member {hello.member} is a copy of that of {name_of(same)}, which is connected: start "
                "it with an empty folder"
            )

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
        self._require_single(hello)
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
        log.info("replica_connected", member=hello.member, start=start, end=self._pieces.end)
        return stream

    def acknowledge(self, stream: ReplicaStream, acknowledged: Acknowledged) -> None:
        """Note a message of a replica."""
        stream.acknowledge(acknowledged)
        self._copied[stream.member] = acknowledged.end
        self._commits.acknowledged(stream.identity, min(acknowledged.end, self._pieces.end))

    def close_stream(self, stream: ReplicaStream) -> None:
        """Forget a stream that has ended."""
        stream.end()
        if self.streams.get(stream.identity) is stream:
            del self.streams[stream.identity]
            log.info("replica_disconnected", member=stream.member, synced=stream.acknowledged.end)

    # -- the set of members in sync -----------------------------------------------------------------------------------

    async def _look_after_set(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            self._note_end()
            self.lags = {
                stream.member: Lag(max(0, self.end - self.synced_end(identity)), self.lag_s(identity))
                for identity, stream in self.streams.items()
            }
            for stream in [stream for stream in self.streams.values() if stream.silent_s > SILENCE_S]:
                self.close_stream(stream)  # so that the replica can open another one
                stream.cancel()
            try:
                await self._change_set()
            except StaleEpochError as error:
                self.on_stale(error)
                return
            except (OSError, StoreError) as error:
                log.warning("group_state_not_changed", error=str(error))

    def _note_end(self) -> None:
        now = self._loop.time()
        self._ends.append(_End(now, self._pieces.end))
        while len(self._ends) > 1 and self._ends[1].time_s <= now - self._settings.replica_lag_ms / 1000:
            self._ends.popleft()

    def lag_s(self, identity: str) -> float:
        """Return for how long a replica has been behind the log's end, at most somewhat more than the allowed lag."""
        synced, now = self.synced_end(identity), self._loop.time()
        behind = next((end for end in self._ends if end.offset > synced), None)
        return 0.0 if behind is None else now - behind.time_s

    async def _change_set(self) -> None:
        if self._has_appointed:
            return
        pending = self._commits.pending or self._wanted_change()
        if pending is None:
            return
        known = self._commits.known
        taken = await asyncio.to_thread(self._group_store.propose, pending)
        self._commits.learn(taken)
        if taken.in_sync != known.in_sync:
            self.set_changes["joined"] += len(taken.in_sync - known.in_sync)
            self.set_changes["left"] += len(known.in_sync - taken.in_sync)
            log.info("in_sync_changed", in_sync=len(taken.in_sync), min_in_sync=taken.min_in_sync, epoch=taken.epoch)
        self._wake()

    def _wanted_change(self) -> GroupState | None:
        if not self._is_sync:
            return None
        for identity in self._commits.known.in_sync - {self._identity}:
            if not self._is_near(identity):
                return self._commits.remove(identity)
        for identity in filter(self._is_near, self.streams):  # one that is cut has everything that was committed, too
            joined = self._commits.add(identity, epoch_start=self._epoch_start)
            if joined is not None:
                return joined
        return None

    def _is_near(self, identity: str) -> bool:
        return identity in self.streams and self.lag_s(identity) <= self._settings.replica_lag_ms / 1000

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
            ArgumentIllegalError: it is not in sync.
            DeadlineExceededError: it did not catch up in time; this member remains the writer.
        """
        stream = next((one for one in self._waited_for() if one.member == name), None)
        if stream is None or stream.identity not in self._commits.known.in_sync:
            raise ArgumentIllegalError(
                f"member {name!r} is not in sync, so it cannot become the writer", argument="member"
            )
        self._successor = self._settings.members.get(name, "")
        try:
            await self._until_all_is_committed(stream)
        except BaseException:
            self._successor = None
            raise
        self._appointing = asyncio.create_task(self._appoint(stream))
        await asyncio.shield(self._appointing)  # a caller that leaves does not stop it halfway
        return self.epoch

    async def _until_all_is_committed(self, stream: ReplicaStream) -> None:
        deadline = self._loop.time() + _HAND_OVER_S
        while self.in_flight_bytes() or min(self._commits.committed, stream.acknowledged.end) < self._pieces.end:
            if self._loop.time() > deadline or stream.is_ended:
                raise DeadlineExceededError(f"member {stream.member} did not catch up within {_HAND_OVER_S:g} s")
            await asyncio.sleep(0.005)

    async def _appoint(self, stream: ReplicaStream) -> None:
        """Give the role away durably: this member does not write after a restart."""
        known = self._commits.known
        try:
            taken = await asyncio.to_thread(self._group_store.propose, replace(known, writer=stream.identity))
            if taken.writer != stream.identity:
                raise DeadlineExceededError("the group's state has changed meanwhile: try again")
        except BaseException:
            self._successor = None
            raise
        self._has_appointed = True
        self._commits.learn(taken)
        await self.share_files()
        stream.hand_over()
        await self._release_to(stream.identity)
        log.info("handed_over", member=stream.member, epoch=self.epoch)
        self._on_handed_over()
