"""An HTTP server that only reads queues and sends their records: `python -m benchmarks.bare_queues DATA QUEUES UNITS`.

A GET of `/FIRST/COUNT` is answered with the records of queues FIRST to FIRST + COUNT - 1 of the store DATA, whose
topics have QUEUES queues each, and whose queues have UNITS units each in one file. It makes only the system calls of a
pull, the first of which also lists a queue's folder and opens its file. It checks nothing, and names no queue in its
answer: the upper bound of pulls from many queues on this machine. It prints its port.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.serve_asgi import Message, Receive, Send, serve
from tidemark.format.consume_queue import UNIT_SIZE, decode_units
from tidemark.read.buffers import POOL
from tidemark.store.paths import StorePaths, queue_folder


class BareQueues:
    """The queues of a store, in the order of topics and queue ids, for reading without any check."""

    def __init__(self, data: Path, queues: int, units: int) -> None:
        paths = StorePaths(data)
        self._root = os.fspath(paths.consume_queue)
        self._queues = queues
        self._units = units
        self._open: dict[int, int] = {}  # descriptor by number of the queue
        (log,) = paths.commit_log.iterdir()
        self._log = os.open(log, os.O_RDONLY)

    def records(self, first: int, count: int) -> memoryview:
        """Return the records of *count* queues from number *first* on, as they are stored."""
        size = self._units * UNIT_SIZE
        units = decode_units(b"".join(os.pread(self._file(first + n), size, 0) for n in range(count)))
        starts = units["physical_offset"].astype(np.int64)
        ends = starts + units["message_size"]
        edges = [0, *(np.flatnonzero(starts[1:] != ends[:-1]) + 1).tolist(), len(units)]
        runs = [(int(starts[begin]), int(ends[end - 1])) for begin, end in pairwise(edges)]
        data, at = POOL.lend(sum(end - begin for begin, end in runs)).data, 0
        for begin, end in runs:
            os.preadv(self._log, [data[at : at + end - begin]], begin)
            at += end - begin
        return data

    def _file(self, number: int) -> int:
        found = self._open.get(number)
        if found is None:
            topic, queue_id = divmod(number, self._queues)
            folder = os.path.join(self._root, queue_folder(f"bench-{topic}", queue_id))
            (name,) = os.listdir(folder)
            found = self._open[number] = os.open(os.path.join(folder, name), os.O_RDONLY)
        return found


def main(data: str, queues: str, units: str) -> None:
    """Serve until terminated."""
    bare = BareQueues(Path(data), int(queues), int(units))

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        first, count = (int(part) for part in scope["path"].strip("/").split("/"))
        records = bare.records(first, count)
        headers = [(b"content-type", b"application/octet-stream"), (b"content-length", str(len(records)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": records})

    serve(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
