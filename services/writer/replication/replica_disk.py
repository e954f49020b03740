"""ReplicaDisk: the files of a replica. One thread at a time uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import orjson
import structlog

from tidemark.errors import DiskFullError
from tidemark.replication.known_state import KnownState
from tidemark.replication.member import Member
from tidemark.replication.member_files import STATE, MemberFiles
from tidemark.replication.stored_state import decode_state
from tidemark.store.originals.checked_copy import copy_path, write_checked
from tidemark.store.originals.next_offsets import decode_next_offsets

from ..log.committed_offset import PublishedOffsets
from ..log.open_store import OpenStore
from .copied_files import SNAPSHOT, copied_files
from .messages import Acknowledged, Config, Welcome
from .piece import Piece
from .replica_log import ReplicaLog

log = structlog.get_logger()


class Applied(NamedTuple):
    """State of the disk after a step. confirm: the committed end that this member's readers see."""

    acknowledged: Acknowledged
    confirm: int


class ReplicaDisk:
    """The log, the small files, and the published offsets of a replica.

    store: an open store, whose journal this object replaces. member: its log's end and epochs, as they are on the disk.
    on_cut: called with the number of uncommitted bytes that were cut.
    """

    def __init__(
        self,
        store: OpenStore,
        files: MemberFiles,
        member: Member,
        known: KnownState,
        *,
        on_cut: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._on_cut = on_cut
        self.member = member
        self._store = store
        self._files = files
        self._known = known
        self._paths = copied_files(store.paths)
        self._published = PublishedOffsets(store.checkpoint, store.flushed)
        store.journal.close()
        self._log = ReplicaLog(store.segments, store.begin_journal, end=member.end)
        self._store_timestamp = store.recovered.store_timestamp
        self._config_number = 0
        self._durable_confirm = member.confirm
        self._snapshot: tuple[int, bytes] | None = None  # the writer's queue offsets at a position above the log's end

    def follow(self, welcome: Welcome, writer_end: int) -> int:
        """Cut the bytes that only this log has; return the physical offset at which the copy continues.

        Raises:
            StaleEpochError: the writer's epoch is older than the promised one.
            ReplicaDivergedError: the logs part below the confirm offset, so that nothing is cut.
            FlushFailedError: the log must stop.
        """
        before = self.member.end
        point = self.member.follow(welcome.epoch, welcome.epochs, writer_end)
        if self._files.promised() < welcome.epoch:
            self._files.promise(welcome.epoch)
        self._save_epochs()
        if point < before:
            self._on_cut(before - point)
            log.warning("uncommitted_tail_cut", start=point, bytes=before - point, epoch=welcome.epoch)
            self._store.forget_snapshot()  # it may count records that are cut
        self._log.cut(point)
        self._config_number, self._snapshot = 0, None
        if self._log.is_empty and point < welcome.min_offset:
            self._begin_at(welcome.min_offset)
        return self.member.end

    def _begin_at(self, offset: int) -> None:
        """Begin the empty log where the writer's begins, whose retention has deleted the earlier files."""
        self._store.forget_snapshot()
        self.member.begin_at(offset)
        self._save_epochs()
        self._log.begin_at(offset)
        self._published.flush(offset, store_timestamp=self._store_timestamp)
        self._published.commit(offset)

    def _save_epochs(self) -> None:
        if self._files.epochs() != self.member.epochs:
            self._files.save_epochs(self.member.epochs)

    def apply(self, received: Sequence[Piece | Config], committed: int) -> Applied:
        """Write and sync *received* in its order, and publish the committed end. committed: that of the writer.

        Raises:
            PieceIllegalError: a piece does not continue the log, or it was changed on its way.
            DiskFullError, DiskFailedError: it cannot be written.
            FlushFailedError: the log must stop.
        """
        for one in received:
            if isinstance(one, Piece):
                self._append(one)
            else:
                self._write_config(one)
        self.member.sync(self._log.sync())
        self._save_snapshot()
        self._publish(committed)
        return Applied(self.acknowledged, self.member.confirm)

    @property
    def acknowledged(self) -> Acknowledged:
        """The acknowledgement of everything that is synced."""
        return Acknowledged(self.member.synced, self._config_number, self._store.free_bytes(self._store.paths.root))

    def _append(self, piece: Piece) -> None:
        epochs = self.member.epochs
        self.member.append(piece.start, piece.end)
        try:
            if self.member.epochs != epochs:  # before the first byte of an epoch
                self._save_epochs()
            self._log.append(piece)
        except BaseException:
            self.member.take_back(piece.start)
            raise
        self._store_timestamp = max(self._store_timestamp, piece.store_timestamp)

    def _write_config(self, config: Config) -> None:
        file = self._paths.get(config.name)
        if config.name == SNAPSHOT:
            self._snapshot = decode_next_offsets(orjson.loads(config.content)).position, config.content
        elif config.name == STATE:
            self._known.adopt(decode_state(config.content))
        elif file is None:
            log.warning("unknown_file_ignored", name=config.name)
        else:
            self._store.storage.make_folder(file.path.parent)
            if (copy := copy_path(file.path)) is not None:
                self._store.storage.make_folder(copy.parent)
            write_checked(file.path, config.content, self._store.storage)
        self._config_number = config.number

    def _save_snapshot(self) -> None:
        """Save the writer's queue offsets once the log has all records that they count, so that a start reads less.

        A log without bytes may have no file yet, and a start refuses queue offsets without files.
        """
        if self._snapshot is not None and self._snapshot[0] <= self.member.synced and not self._log.is_empty:
            write_checked(self._store.snapshot_path, self._snapshot[1], self._store.storage)
            self._snapshot = None

    def _publish(self, committed: int) -> None:
        confirm = self.member.commit(committed)
        self._published.flush(self.member.synced, store_timestamp=self._store_timestamp)
        self._published.commit(confirm)

    def make_confirm_durable(self) -> None:
        """Sync the confirm offset if it has moved."""
        if self.member.confirm > self._durable_confirm:
            self._durable_confirm = self.member.confirm
            self._store.make_committed_durable()

    def close(self) -> None:
        """Sync everything, and close the journal; the store's other files remain open."""
        try:
            self.member.sync(self._log.sync())
            self._store.make_committed_durable()
        except DiskFullError as error:
            log.warning("stop_not_clean", error=error.message)
        finally:
            self._log.close()
