"""`python -m benchmarks.lookups [MESSAGES]`: cost of lookups and of a pull of one message, warm, over keep-alive HTTP.

Prints the median latency and the service's processor time per request, for one and for four clients, in turn with a
bare uvicorn that answers as many bytes from memory. MESSAGES (default 100,000) are in the store, each with a key.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
import psutil

from benchmarks.bare_server import bare_server
from benchmarks.connection import Connection
from benchmarks.indexing import index_once
from benchmarks.producers import PRODUCERS, Load
from benchmarks.rows.lookup import Keys
from benchmarks.stack import running
from benchmarks.stores import LARGE_BATCH, append_log
from tidemark.local.local_stack import QUERY

_TOPIC, _BODY_BYTES = "bench", 100
_PLACES, _REQUESTS, _ROUNDS = 500, 2_000, 3


class Cost(NamedTuple):
    """Cost of one request. p50_us: as the client sees it; processor_us: of the server."""

    p50_us: float
    processor_us: float


def _measure(address: str, pid: int, paths: Sequence[str], clients: int) -> Cost:
    connections = [Connection(address) for _ in range(clients)]
    for connection in connections:
        connection.get(paths[0])
    server = psutil.Process(pid)
    with ThreadPoolExecutor(clients) as pool:
        before = sum(server.cpu_times()[:2])
        times = list(pool.map(_ask, connections, [_REQUESTS // clients] * clients, [paths] * clients))
        used = sum(server.cpu_times()[:2]) - before
    return Cost(statistics.median(chain.from_iterable(times)) * 1e6, used / (_REQUESTS // clients * clients) * 1e6)


def _ask(connection: Connection, count: int, paths: Sequence[str]) -> list[float]:
    """Return the seconds of each of *count* requests."""
    times = []
    for number in range(count):
        before = time.perf_counter()
        connection.get(paths[number % len(paths)])
        times.append(time.perf_counter() - before)
    return times


def _paths(address: str, keys: Sequence[str]) -> dict[str, list[str]]:
    """Return the paths of each kind of request. All of them find one message."""
    connection = Connection(address)
    of_topic = f"/v1/topics/{_TOPIC}"
    by_key = [f"{of_topic}/messages?key={key}" for key in keys]
    found: list[dict[str, Any]] = [
        message for path in by_key for message in orjson.loads(connection.get(path))["messages"]
    ]
    return {
        "by key": by_key,
        "by unique key": [f"{of_topic}/messages?unique_key={message['message_id']}" for message in found],
        "by id": [f"/v1/messages/{message['offset_msg_id']}" for message in found],
        "by physical offset": [f"/v1/messages/at/{message['physical_offset']}" for message in found],
        "pull of one": [
            f"{of_topic}/queues/{message['queue_id']}/messages?offset={message['queue_offset']}&max_messages=1"
            for message in found
        ],
    }


def main(messages: int) -> None:
    """Make a store, and measure each kind of request."""
    batches = max(1, messages // LARGE_BATCH // PRODUCERS)
    keys = Keys(batches * LARGE_BATCH).draw(_PLACES, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "store"
        append_log(data, Load(_TOPIC, LARGE_BATCH, _BODY_BYTES, batches, keyed=True))
        index_once(data)
        with running(data, QUERY) as stack:
            address = urlsplit(stack.query_url).netloc
            pid = stack.services[QUERY].pid
            for kind, paths in _paths(address, keys).items():
                random.Random(2).shuffle(paths)
                _report(kind, address, pid, paths)


def _report(kind: str, address: str, pid: int, paths: Sequence[str]) -> None:
    size = len(Connection(address).get(paths[0]))
    with bare_server("benchmarks.bare_http", str(size)) as bare:
        for clients in (1, 4):
            pairs = [
                (_measure(address, pid, paths, clients), _measure(bare.address, bare.pid, paths, clients))
                for _ in range(_ROUNDS)
            ]
            ours, floor = (
                Cost(*map(statistics.median, zip(*costs, strict=True))) for costs in zip(*pairs, strict=True)
            )
            ratio = statistics.median(pair[0].p50_us / pair[1].p50_us for pair in pairs)
            print(
                f"{kind}, {clients} clients, {size:,} bytes: p50 {ours.p50_us:.0f} µs, bare {floor.p50_us:.0f} µs "
                f"({ratio:.2f} x); processor {ours.processor_us:.0f} µs, bare {floor.processor_us:.0f} µs",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
