"""A replica and the streams that it opens, over a store of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.writer.replication.messages import Acknowledged, Hello, Told, Welcome
from services.writer.replication.replica import Replica
from tests.unit.writer.log.log_tails import FILE_SIZE, Tail
from tests.unit.writer.replication.replicas import OpenedReplica, pieces_of, replica_settings, written
from tidemark.errors import WriterUnreachableError
from tidemark.replication.epochs import Epoch

LONG_S = 20.0


class Link:
    """A stream whose messages the test gives. sent: the replica's messages."""

    def __init__(self, *messages: Told) -> None:
        self.sent: list[Hello | int | Acknowledged] = []
        self._messages = list(messages)
        self.ended, self.heard = asyncio.Event(), asyncio.Event()

    async def send(self, message: Hello | int | Acknowledged) -> None:
        self.sent.append(message)
        self.heard.set()

    async def receive(self) -> Told:
        if self._messages:
            return self._messages.pop(0)
        await self.ended.wait()
        raise WriterUnreachableError("the test has ended the stream")

    @property
    def acknowledged(self) -> list[int]:
        return [message.end for message in self.sent if isinstance(message, Acknowledged)]


async def find_writer(epoch: int) -> str:
    return "writer"


async def until_acknowledged(link: Link, count: int) -> None:
    """Wait for so many acknowledgements."""
    async with asyncio.timeout(LONG_S):
        while len(link.acknowledged) < count:
            link.heard.clear()
            await link.heard.wait()


def test_a_new_stream_acknowledges_nothing_of_the_one_before(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next writer may have cut it: an acknowledgement of those bytes would commit bytes that are nowhere."""
    monkeypatch.setattr("services.writer.replication.replica.HEARTBEAT_S", 0.02)
    (piece,) = pieces_of(tail, written(tail, 300))

    async def test() -> None:
        opened = OpenedReplica(tmp_path / "replica")
        first = Link(Told(Welcome("g", 5, (Epoch(5, 0),)), 0, piece.end), Told(piece, 0, piece.end))
        second = Link(Told(Welcome("g", 6, (Epoch(6, 0),)), 0, 0))
        links = [first, second]

        @contextlib.asynccontextmanager
        async def connect(address: str) -> AsyncIterator[Link]:
            yield links.pop(0)

        replica = Replica(replica_settings(tmp_path), opened.replica, FILE_SIZE, lambda: "g", find_writer, connect)
        running = asyncio.create_task(replica.run())
        await until_acknowledged(first, 3)
        assert first.acknowledged[-1] == piece.end
        first.ended.set()
        await until_acknowledged(second, 3)
        assert set(second.acknowledged) == {0}
        running.cancel()
        await asyncio.wait((running,))
        await replica.close()
        opened.close()

    asyncio.run(test())
