"""QueueLocks: which client consumes a queue in order. RocketMQ: RebalanceLockManager."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

LOCK_S = 60.0  # clients ask again every 20 s

Queue = tuple[str, int]  # topic, queue id


class _Lock(NamedTuple):
    client_id: str
    expires_s: float


class QueueLocks:
    """The locks of all groups. Lives on one thread. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._groups: dict[str, dict[Queue, _Lock]] = {}

    def lock(self, group: str, client_id: str, queues: Iterable[Queue]) -> set[Queue]:
        """Lock for the client those of *queues* that no other client has locked; return them."""
        now_s = self._clock()
        locks = self._groups.setdefault(group, {})
        granted = set()
        for queue in queues:
            held = locks.get(queue)
            if held is None or held.client_id == client_id or held.expires_s <= now_s:
                locks[queue] = _Lock(client_id, now_s + LOCK_S)
                granted.add(queue)
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[Queue]) -> None:
        """Release those of *queues* that the client has locked."""
        locks = self._groups.get(group, {})
        for queue in queues:
            held = locks.get(queue)
            if held is not None and held.client_id == client_id:
                del locks[queue]

    def free(self, client_id: str, group: str | None = None) -> None:
        """Release all locks of a client that has left *group*; None: all groups."""
        for name in list(self._groups) if group is None else [group]:
            locks = self._groups.get(name, {})
            for queue in [queue for queue, held in locks.items() if held.client_id == client_id]:
                del locks[queue]
            if not locks:
                self._groups.pop(name, None)

    def expire(self) -> None:
        """Forget locks that have expired."""
        now_s = self._clock()
        for name, locks in list(self._groups.items()):
            for queue in [queue for queue, held in locks.items() if held.expires_s <= now_s]:
                del locks[queue]
            if not locks:
                del self._groups[name]
