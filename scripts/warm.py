"""Compile every loop into the cache, once, so that no service does at its first start: the last step of `make sync`."""

from __future__ import annotations

import numpy as np

from services.writer.batch.record_encoder import warm_up as writing
from tidemark.format import index_file
from tidemark.format.host import IPV4_HOST_SIZE
from tidemark.format.message_id import UniqueKeys
from tidemark.format.pack import Column, MessageColumns, pack_batches
from tidemark.index.warm_up import warm_up as indexing
from tidemark.read.warm_up import warm_up as reading


def checking() -> None:
    """An index file's slots and entries, as mapped."""
    slots, entries = np.zeros(8, np.uint8), np.zeros(60, np.uint8)
    slots.flags.writeable = entries.flags.writeable = False
    index_file.find_broken_chain(slots, entries, index_file.Header())


def packing() -> None:
    """One row of one byte, as a client packs a table."""
    body = Column(np.frombuffer(b"x", np.uint8), np.array([0, 1], np.int64))
    list(pack_batches(MessageColumns(body), queues=1, max_count=1, max_bytes=1 << 20, unique_keys=UniqueKeys()))


if __name__ == "__main__":
    packing()
    writing(bytes(IPV4_HOST_SIZE))
    indexing()
    reading()
    checking()
