"""SlaveServer: the master's side of RocketMQ's protocol for slaves (its `DefaultHAService`).

The messages are those of `follow/ha_link.py`, seen from the other side. Only committed bytes are sent, in frames that
never cross a file. A slave whose first report is 0 has an empty log and gets the whole one.

A slave builds wrong queue files of a topic of batches that it does not know yet, or that was one before it was deleted,
and asks for topics once a minute. Therefore nothing is sent to its host until that knows the last change of this kind.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from tidemark.errors import StoreError

from ..log.committed_offset import Committed
from ..replication.concurrent_works import until_first_ends

log = structlog.get_logger()

_SILENCE_S = 20.0  # RocketMQ's haHousekeepingInterval
_HEARTBEAT_S = 5.0  # RocketMQ's haSendHeartbeatInterval
_OFFSET = struct.Struct(">q")
_HEAD = struct.Struct(">qi")


class Slave:
    """A connection. acknowledged: the end that the slave has reported; it need not have synced it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.host, self.port = writer.get_extra_info("peername")[:2]
        self.acknowledged = 0

    @property
    def address(self) -> str:
        """host:port."""
        return f"{self.host}:{self.port}"


class SlaveServer:
    """Sends the log to slaves. Lives on the event loop.

    min_offset    returns the physical offset at which the log begins
    read          returns bytes of one file of the log, from a physical offset on and at most up to another one
    batch_changes returns a number that rises if a topic of batches comes or goes; 0 if there never was one
    most          connections at a time
    """

    def __init__(
        self,
        committed: Committed,
        min_offset: Callable[[], int],
        read: Callable[[int, int], Awaitable[bytes]],
        batch_changes: Callable[[], int],
        *,
        most: int,
    ) -> None:
        self._committed = committed
        self._min_offset = min_offset
        self._read = read
        self._batch_changes = batch_changes
        self._most = most
        self._told: dict[str, int] = {}  # changes in the last answer, by host
        self._known: dict[str, int] = {}  # changes in the table of the slave, by host
        self._server: asyncio.Server | None = None
        self.slaves: set[Slave] = set()
        self.port = 0

    async def bind(self, listen: str) -> None:
        """Bind address:port, and set `port`. Raises OSError."""
        host, _, port = listen.rpartition(":")
        self._server = await asyncio.start_server(self._serve, host.strip("[]"), int(port), start_serving=False)
        self.port = self._server.sockets[0].getsockname()[1]

    async def start(self) -> None:
        """Accept connections."""
        assert self._server is not None
        await self._server.start_serving()
        log.info("slaves_served", port=self.port)

    def bounds(self) -> tuple[int, int]:
        """Return the log's begin and its committed end."""
        return self._min_offset(), self._committed.offset

    @property
    def behind_bytes(self) -> int:
        """Committed bytes that the slave that is furthest behind has not reported; 0 without slaves."""
        slaves = list(self.slaves)
        return max((self._committed.offset - slave.acknowledged for slave in slaves), default=0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        slave = Slave(writer)
        if len(self.slaves) >= self._most:
            log.warning("slave_refused", address=slave.address, limit=self._most, setting="max_slaves")
            writer.close()
            return
        self.slaves.add(slave)
        reason = "the writer stops"
        try:
            start = await _report(reader)
            if start < 0:
                raise ValueError(f"its first report is {start}")
            slave.acknowledged = start
            log.info("slave_connected", address=slave.address, end=start)
            begin, end = self.bounds()
            if start and not begin <= start <= end:
                log.warning("slave_outside_log", address=slave.address, end=start, log_begin=begin, log_end=end)
            await until_first_ends(self._send(slave, start or self._min_offset()), _note_reports(reader, slave))
        except EOFError:
            reason = "it has closed the connection"
        except (OSError, ValueError, StoreError) as error:
            reason = str(error) or f"it was silent for {_SILENCE_S:g} s"
        finally:
            self.slaves.discard(slave)
            writer.close()
            log.info("slave_disconnected", address=slave.address, end=slave.acknowledged, reason=reason)

    def topics_told(self, host: str) -> None:
        """Note that a slave on *host* gets all topics of the present, because it has asked for them."""
        self._told[host] = self._batch_changes()

    def topics_known(self, host: str) -> None:
        """Note that a slave on *host* has put the topics into its table: it asks for offsets after that."""
        self._known[host] = self._told.get(host, 0)
        self._committed.wake()

    def _knows_topics(self, slave: Slave) -> bool:
        return self._known.get(slave.host, 0) >= self._batch_changes()

    async def _send(self, slave: Slave, position: int) -> None:
        """Send the log from *position* on. Outside the log there are only heartbeats, as from RocketMQ's master."""
        writer, loop = slave.writer, asyncio.get_running_loop()
        quiet_until = loop.time() + _HEARTBEAT_S
        while True:
            data, end = b"", self._committed.offset
            if self._min_offset() <= position < end and self._knows_topics(slave):  # all topics below that end
                data = await self._read(position, end)
            if not data and loop.time() < quiet_until:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._committed.wait(), quiet_until - loop.time())
                continue
            writer.write(_HEAD.pack(position, len(data)) + data)
            await writer.drain()
            position += len(data)
            quiet_until = loop.time() + _HEARTBEAT_S

    async def stop(self) -> None:
        """Close all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for slave in self.slaves:
            slave.writer.close()


async def _report(reader: asyncio.StreamReader) -> int:
    """Return the next report. Raises EOFError, TimeoutError."""
    (offset,) = _OFFSET.unpack(await asyncio.wait_for(reader.readexactly(_OFFSET.size), _SILENCE_S))
    return int(offset)


async def _note_reports(reader: asyncio.StreamReader, slave: Slave) -> None:
    while True:
        slave.acknowledged = await _report(reader)
