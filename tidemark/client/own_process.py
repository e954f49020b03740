"""OwnProcess: detects use of a client in a forked process; gRPC and threads do not survive a fork."""

from __future__ import annotations

import os

from tidemark.errors import ForkedProcessError


class OwnProcess:
    """The process that created *owner*, a client such as a Producer."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._pid = os.getpid()

    @property
    def is_this_one(self) -> bool:
        return os.getpid() == self._pid

    def require(self) -> None:
        """Raise ForkedProcessError in a process that was forked after the client was created."""
        if os.getpid() != self._pid:
            raise ForkedProcessError(
                f"this {self._owner} was created in process {self._pid}, and process {os.getpid()} was forked from it: "
                f"a fork copies neither threads nor connections. Create a {self._owner} in each process, after the "
                "fork",
                made_in=self._pid,
                process=os.getpid(),
            )
