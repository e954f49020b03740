"""GroupWatch: notices that another member of a group writes while the connected one is silent."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tidemark.client.wire.batch_stream import BatchStream
from tidemark.client.wire.store_members import StoreMembers
from tidemark.errors import StoreError

SILENCE_S = 1.0  # of a member, after which the group is asked who writes


class GroupWatch:
    """A thread that looks at the present *stream* to a group. A machine that hangs does not end its connections."""

    def __init__(self, members: StoreMembers, stream: Callable[[], BatchStream]) -> None:
        self._members = members
        self._stream = stream
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidemark-group", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def _run(self) -> None:
        while not self._closing.wait(SILENCE_S):
            stream = self._stream()
            if stream.waiting_s() < SILENCE_S:
                continue
            try:
                writer = self._members.find(SILENCE_S)
            except (StoreError, ValueError):  # no member writes now; or the connections were closed meanwhile
                continue
            if writer.address != stream.member:
                stream.leave_member()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
