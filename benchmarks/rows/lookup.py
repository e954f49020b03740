"""Sequential lookups over HTTP: by key, with the store's files in memory and on disk, and by message id."""

from __future__ import annotations

import random
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.indexing import index_once
from benchmarks.page_cache import drop_page_cache, files_of
from benchmarks.producers import PRODUCERS, Load
from benchmarks.report import Result, latency_plots, percentile_rows
from benchmarks.stack import running
from benchmarks.stores import LARGE_BATCH, append_log, passing_store
from tidemark.client import Query
from tidemark.local.local_stack import QUERY

MESSAGES = 10_000_000
_BODY_BYTES = 100
_TOPIC = "bench"
_WARM, _COLD = 4000, 300
_TARGET = {"p50": "≤ RocketMQ", "p99": "≤ RocketMQ"}
_KEYS = ("key_lookup_warm_p50", "key_lookup_warm_p99", "key_lookup_cold_p99", "id_lookup_p99")


class Keys(NamedTuple):
    """The stored keys: `<queue id>-<number>`."""

    of_each_queue: int

    def draw(self, count: int, seed: int) -> list[str]:
        """Return *count* different keys."""
        chosen = random.Random(seed).sample(range(PRODUCERS * self.of_each_queue), count)
        return [f"{number % PRODUCERS}-{number // PRODUCERS}" for number in chosen]


def _measure(folder: Path, scale: float) -> Result:
    batches = max(5, round(MESSAGES * scale / LARGE_BATCH / PRODUCERS))
    load = Load(_TOPIC, LARGE_BATCH, _BODY_BYTES, batches, keyed=True)
    keys = Keys(batches * LARGE_BATCH)
    enough = min(1, 10 * scale)  # a p99 of a few hundred lookups depends on a few of them
    warm_count, cold_count = max(200, int(_WARM * enough)), max(50, int(_COLD * min(1, scale)))
    with passing_store(folder / "lookup") as data:
        append_log(data, load)
        index_once(data)
        with running(data, QUERY) as stack:  # first and alone, because mapped pages cannot be dropped
            (cold,) = run_clients([partial(_look_up_cold, stack.query_url, keys, cold_count, data)])
        with running(data, QUERY) as stack:
            ((warm, by_id),) = run_clients([partial(_look_up_warm, stack.query_url, keys, warm_count)])
    note = f"{load.batches * LARGE_BATCH * PRODUCERS:,} messages indexed, a key and a UNIQ_KEY each; "
    rows = [
        *percentile_rows(
            "key_lookup_warm", "lookup by key, warm", warm, targets=_TARGET, note=f"{note}{len(warm):,} different keys",
            percentiles=("p50", "p99"),
        ),
        *percentile_rows(
            "key_lookup_cold", "lookup by key, cold", cold, targets=_TARGET,
            note=f"{len(cold)} keys, before each the store's files dropped from memory", percentiles=("p99",),
        ),
        *percentile_rows(
            "id_lookup", "lookup by id", by_id, targets=_TARGET, note=f"{len(by_id):,} different ids, warm",
            percentiles=("p99",),
        ),
    ]  # fmt: skip
    lines = {"by key, warm": warm, "by key, cold": cold, "by id": by_id}
    return Result(rows, latency_plots("lookups", lines))


def _look_up_warm(url: str, keys: Keys, count: int, start: Start) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ms of each lookup by key, and of each lookup by the id of a found message."""
    drawn = keys.draw(count, seed=1)
    with Query(url) as query:
        for key in drawn:  # warms each page that will be read
            _by_key(query, key)
        start()
        by_key, ids = [], []
        for key in drawn:
            before = time.perf_counter()
            ids.append(_by_key(query, key))
            by_key.append((time.perf_counter() - before) * 1000)
        for message_id in ids:  # warm-up, as for the other brokers
            query.message(message_id)
        by_id = []
        for message_id in ids:
            before = time.perf_counter()
            found = query.message(message_id)["messages"]
            by_id.append((time.perf_counter() - before) * 1000)
            if found[0]["offset_msg_id"] != message_id:
                raise RuntimeError(f"the lookup by id {message_id} returned another message than the lookup by key")
    return np.array(by_key), np.array(by_id)


def _look_up_cold(url: str, keys: Keys, count: int, data: Path, start: Start) -> NDArray[np.float64]:
    """Return the ms of each lookup by key."""
    times = []
    files = files_of(data, least_bytes=1 << 16)
    with Query(url) as query:
        warm_up, *drawn = keys.draw(count + 1, seed=2)
        _by_key(query, warm_up)
        start()
        for key in drawn:
            drop_page_cache(files)
            before = time.perf_counter()
            _by_key(query, key)
            times.append((time.perf_counter() - before) * 1000)
    return np.array(times)


def _by_key(query: Query, key: str) -> str:
    """Return the id of the message with *key*. Raises RuntimeError unless there is exactly one."""
    messages = query.by_key(_TOPIC, key)["messages"]
    if len(messages) != 1 or messages[0]["keys"] != [key]:
        raise RuntimeError(f"expected one message with key {key}, found {len(messages)}")
    return messages[0]["offset_msg_id"] or ""


BENCHMARKS = (Benchmark("lookup", _KEYS, _measure),)
