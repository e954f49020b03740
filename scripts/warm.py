"""Compiles all loops into the cache, so that no service compiles them at its first start. Last step of `make sync`."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from services.writer.batch.record_encoder import warm_up as writing
from tidemark.format import index_file
from tidemark.format.message_id import UniqueKeys
from tidemark.format.pack import Column, MessageColumns, pack_batches
from tidemark.index.warm_up import warm_up as indexing
from tidemark.read.warm_up import warm_up as reading


def checking() -> None:
    """Compile the check of an index file's slots and entries, with read-only arrays as mapped."""
    slots, entries = np.zeros(8, np.uint8), np.zeros(60, np.uint8)
    slots.flags.writeable = entries.flags.writeable = False
    index_file.find_broken_chain(slots, entries, index_file.Header())


def packing() -> None:
    """Compile the packing of a client's table, with one row of one byte."""
    body = Column(np.frombuffer(b"x", np.uint8), np.array([0, 1], np.int64))
    list(pack_batches(MessageColumns(body), queues=1, max_count=1, max_bytes=1 << 20, unique_keys=UniqueKeys()))


LOOPS: dict[str, Callable[[], None]] = {
    "sending tables": packing,
    "the writer": writing,
    "the pipeline": indexing,
    "readers": reading,
    "store check": checking,
}


def warm_all() -> None:
    """Call every loop once, with the types that services and clients use."""
    for user, warm in LOOPS.items():
        print(f"compiling the loops of {user}", file=sys.stderr, flush=True)
        warm()


if __name__ == "__main__":
    warm_all()
