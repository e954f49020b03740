"""The protocols of a client: one with ordinary calls, and one for asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from benchmarks.peers.python.load import Load

Addresses = Mapping[str, str]  # of the server, as servers.py gives them
RECEIVE_S = 1.0  # longest wait of `receive`


class Client(Protocol):
    """A client of one topic. `send`, `begin` and `finish` are called in one thread, `receive` also in another one."""

    def __init__(self, addresses: Addresses, load: Load) -> None: ...

    def send(self, body: bytes) -> None:
        """Send a message and wait for its acknowledgement."""

    def begin(self, body: bytes) -> None:
        """Send a message without waiting for its acknowledgement; wait only for room among the unanswered ones."""

    def push(self) -> None:
        """Send the messages that `begin` still holds, because no other one is due."""

    def finish(self) -> None:
        """Wait for all acknowledgements. Raises an exception if a message was not stored."""

    def rewind(self) -> None:
        """Read on from the first message of the topic."""

    def receive(self) -> Sequence[bytes]:
        """Return the bodies of the next messages; none after RECEIVE_S."""

    def close(self) -> None:
        """Close the connections."""


class AsyncClient(Protocol):
    """The same for asyncio, in one event loop."""

    def __init__(self, addresses: Addresses, load: Load) -> None: ...

    async def open(self) -> None:
        """Connect."""

    async def send(self, body: bytes) -> None: ...

    async def begin(self, body: bytes) -> None: ...

    async def push(self) -> None: ...

    async def finish(self) -> None: ...

    async def rewind(self) -> None: ...

    async def receive(self) -> Sequence[bytes]: ...

    async def close(self) -> None: ...
