"""The process that a client was made in: gRPC and threads do not survive a fork."""

from __future__ import annotations

import os

from tidemark.errors import ForkedProcessError


class OwnProcess:
    """The process that made *owner*, a client such as a Producer."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._pid = os.getpid()

    @property
    def is_this_one(self) -> bool:
        return os.getpid() == self._pid

    def require(self) -> None:
        """Raise ForkedProcessError in a process that was forked after the client was made."""
        if os.getpid() != self._pid:
            raise ForkedProcessError(
                f"this {self._owner} was made in process {self._pid}, and process {os.getpid()} was forked from it: a "
                f"fork copies neither its threads nor its connections. Make a {self._owner} in each process, after the "
                "fork",
                made_in=self._pid,
                process=os.getpid(),
            )
