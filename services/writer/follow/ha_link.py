"""HaLink: RocketMQ's protocol between a slave and its master (its `DefaultHAService`). All integers are big-endian.

    slave → master   i64 offset             the first one: from where to send; each: everything below it is acknowledged
    master → slave   i64 offset · i32 size  of the log's bytes that follow; size 0 is a heartbeat

There is no greeting, no checksum and no identity. The first offset must not be 0, because then the master begins with
its last file.
"""

from __future__ import annotations

import asyncio
import struct
from typing import NamedTuple, Self

from tidemark.errors import BrokerUnreachableError

from .broker import Broker

_CONNECT_S = 5.0
_SILENCE_S = 20.0  # RocketMQ's haHousekeepingInterval; a master sends a heartbeat every 5 s
_BUFFER_BYTES = 4 << 20
_OFFSET = struct.Struct(">q")
_HEAD = struct.Struct(">qi")
_MOST_BYTES = 64 << 20  # of a frame; a master sends 32 KiB by default


class HaFrame(NamedTuple):
    """Bytes of the log. data: empty in a heartbeat."""

    offset: int
    data: bytes


class HaLink:
    """A connection to a master. Its methods raise BrokerUnreachableError when it has ended."""

    def __init__(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, broker: Broker) -> Self:
        """Connect to the first of the broker's addresses that can be reached."""
        failures = []
        for address in broker.ha_addresses:
            host, _, port = address.rpartition(":")
            try:
                async with asyncio.timeout(_CONNECT_S):
                    return cls(address, *await asyncio.open_connection(host, int(port), limit=_BUFFER_BYTES))
            except OSError as error:  # TimeoutError is one
                failures.append(f"{address} ({str(error) or 'no answer'})")
        raise BrokerUnreachableError(
            f"broker {broker.name} cannot be reached at its port for slaves: {', '.join(failures)}",
            address=broker.ha_addresses[-1],
        )

    async def report(self, offset: int) -> None:
        """Acknowledge everything below *offset*; the first report says from where to send."""
        try:
            self._writer.write(_OFFSET.pack(offset))
            await self._writer.drain()
        except OSError as error:
            raise self._ended(error) from error

    async def receive(self) -> HaFrame:
        """Return the next frame."""
        try:
            async with asyncio.timeout(_SILENCE_S):
                offset, size = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
                if not 0 <= size <= _MOST_BYTES:
                    raise BrokerUnreachableError(
                        f"{self.address} sends a frame of {size} bytes, but a master sends at most {_MOST_BYTES}: "
                        "is it a broker's port for slaves (haListenPort)?",
                        address=self.address,
                    )
                return HaFrame(offset, await self._reader.readexactly(size))
        except TimeoutError as error:
            raise BrokerUnreachableError(
                f"{self.address} has been silent for {_SILENCE_S:g} s", address=self.address
            ) from error
        except (OSError, EOFError) as error:
            raise self._ended(error) from error

    def _ended(self, error: OSError | EOFError) -> BrokerUnreachableError:
        return BrokerUnreachableError(f"{self.address} has ended the connection: {error}", address=self.address)

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()
