"""SetWatch: the writer's look at its replicas, which changes the set of members in sync."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

import structlog

from tidemark.errors import StaleEpochError, StoreError
from tidemark.replication.group_state import GroupState
from tidemark.replication.group_store import GroupStore

from .messages import SILENCE_S
from .replica_lags import Lag, ReplicaLags
from .replica_stream import ReplicaStream
from .replicated_commits import ReplicatedCommits

log = structlog.get_logger()

_LOOK_S = 0.1  # between two looks


class SetWatch:
    """Looks at the replicas of one writer's epoch. Lives on the event loop.

    streams     of the connected replicas, by identity; their owner changes them
    identity    of the writer
    allowed_lag_s  a replica that is behind for longer is not in sync
    end         returns the physical offset of the log's end
    drop        ends the stream of a silent replica
    on_changed  called after each change of the set
    """

    def __init__(
        self,
        commits: ReplicatedCommits,
        streams: Mapping[str, ReplicaStream],
        group_store: GroupStore,
        *,
        identity: str,
        epoch_start: int,
        allowed_lag_s: float,
        end: Callable[[], int],
        drop: Callable[[ReplicaStream], None],
        on_changed: Callable[[], None],
    ) -> None:
        self.lags: dict[str, Lag] = {}  # by member's name, as of the last look; replaced, not changed
        self.changes = {"joined": 0, "left": 0}
        self._commits = commits
        self._streams = streams
        self._group_store = group_store
        self._identity = identity
        self._epoch_start = epoch_start
        self._ends = ReplicaLags(allowed_lag_s)
        self._end = end
        self._drop = drop
        self._on_changed = on_changed
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Look at once: a replica may join the set, and appends may wait for that."""
        self._woken.set()

    async def run(self, may_change: Callable[[], bool]) -> None:
        """Look at intervals, and when woken. may_change: returns False while the set must stay as it is.

        Raises:
            StaleEpochError: another epoch has begun, so this writer must stop.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), _LOOK_S)
            self._woken.clear()
            self._look()
            try:
                if may_change():
                    await self._change_set()
            except StaleEpochError:
                raise
            except (OSError, StoreError) as error:
                log.warning("group_state_not_changed", error=str(error))

    def lag_s(self, identity: str) -> float:
        """Return for how long a replica has been behind the log's end, at most somewhat more than the allowed lag."""
        return self._ends.seconds(self._commits.synced_end(identity), now_s=asyncio.get_running_loop().time())

    def _look(self) -> None:
        end = self._end()
        self._ends.note_end(end, now_s=asyncio.get_running_loop().time())
        self.lags = {
            stream.member: Lag(max(0, end - self._commits.synced_end(identity)), self.lag_s(identity))
            for identity, stream in self._streams.items()
        }
        for stream in [stream for stream in self._streams.values() if stream.silent_s > SILENCE_S]:
            self._drop(stream)

    async def _change_set(self) -> None:
        pending = self._commits.pending or self._wanted_change()
        if pending is None:
            return
        known = self._commits.known
        taken = await asyncio.to_thread(self._group_store.propose, pending)
        self._commits.learn(taken)
        if taken.in_sync != known.in_sync:
            self.changes["joined"] += len(taken.in_sync - known.in_sync)
            self.changes["left"] += len(known.in_sync - taken.in_sync)
            log.info("in_sync_changed", in_sync=len(taken.in_sync), min_in_sync=taken.min_in_sync, epoch=taken.epoch)
        self._on_changed()

    def _wanted_change(self) -> GroupState | None:
        for identity in self._commits.known.in_sync - {self._identity}:
            if not self._is_near(identity):
                return self._commits.remove(identity)
        for identity in filter(self._is_near, self._streams):  # one that is cut has everything committed, too
            joined = self._commits.add(identity, epoch_start=self._epoch_start)
            if joined is not None:
                return joined
        return None

    def _is_near(self, identity: str) -> bool:
        return identity in self._streams and self.lag_s(identity) <= self._ends.allowed_s
