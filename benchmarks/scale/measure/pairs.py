"""Measures one pair and two pairs on this machine in turn.

Appends use the client's route; pulls are direct, and through a proxy.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.batches import plain_batch
from benchmarks.clients import Start, run_clients
from benchmarks.producers import TIMEOUT_S, require_stored
from benchmarks.pulls import ANSWER_BYTES, ANSWER_MESSAGES
from benchmarks.scale.constants import Figure
from benchmarks.scale.measure.repeat import TIMES, wait_until_visible
from benchmarks.stack import running
from benchmarks.stores import passing_store
from tidemark.client import Producer, Query
from tidemark.local.local_stack import LocalStack

STORES = ("a", "b")
_TOPIC, _QUEUES = "pairs", 4
_MESSAGES, _BODY_BYTES = 100, 1024
_PRODUCERS = 2
_SECONDS = 3.0
_WINDOW = 256  # unanswered batches of a producer


def measure(folder: Path) -> list[Figure]:
    """Return the figures of one pair and of two pairs, each the median of several runs."""
    with contextlib.ExitStack() as closing:
        stacks = []
        for name in STORES:
            data = closing.enter_context(passing_store(folder / f"pair-{name}"))
            stack = closing.enter_context(running(data, settings={"TIDEMARK_STORE_NAME": name}))
            with Producer(stack.writer_address) as producer:
                producer.topics.create(_TOPIC, queues=_QUEUES)
            stacks.append(stack)
        rates: dict[int, list[float]] = {1: [], 2: []}
        _append([stack.writer_address for stack in stacks], 1.0)  # warm-up
        for _ in range(TIMES):
            for count, found in rates.items():
                found.append(_append([stack.writer_address for stack in stacks[:count]], _SECONDS))
        for stack in stacks:
            wait_until_visible(stack.data)
        straight, fronted = _pulls(stacks)
    return [
        Figure("appends to one pair, 100 × 1 KiB", statistics.median(rates[1]), "msg/s"),
        Figure("appends to two pairs, the same producers", statistics.median(rates[2]), "msg/s"),
        Figure("pulls from two query services, straight", straight, "MB/s"),
        Figure("the same through one front in Python", fronted, "MB/s"),
    ]


def _append(addresses: Sequence[str], seconds: float) -> float:
    """Return the acknowledged messages per second."""
    counts = run_clients([partial(_produce, addresses, seconds) for _ in range(_PRODUCERS)])
    return sum(counts) * _MESSAGES / seconds


def _produce(addresses: Sequence[str], seconds: float, start: Start) -> int:
    """Send each batch to the next queue of the route, and return the number of batches."""
    packed = plain_batch(_MESSAGES, _BODY_BYTES)
    with Producer(addresses, timeout_s=TIMEOUT_S) as producer:
        require_stored(producer.send_packed_async(_TOPIC, packed, count=_MESSAGES).result())
        start()
        end = time.perf_counter() + seconds
        under_way, done = [], 0
        while time.perf_counter() < end:
            under_way.append(producer.send_packed_async(_TOPIC, packed, count=_MESSAGES))
            if len(under_way) >= _WINDOW:
                require_stored(under_way.pop(0).result())
                done += 1
        done += sum(future.done() for future in under_way)
        for future in under_way:
            require_stored(future.result())
        return done


def _pulls(stacks: Sequence[LocalStack]) -> tuple[float, float]:
    """Return the MB/s of records from both stores concurrently: directly, and through the proxy."""
    urls = {name: stack.query_url for name, stack in zip(STORES, stacks, strict=True)}
    command = [sys.executable, "-m", "benchmarks.scale.measure.front", *(f"{name}={url}" for name, url in urls.items())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as front:
        try:
            assert front.stdout is not None
            address = f"http://127.0.0.1:{int(front.stdout.readline())}"
            straight, fronted = [], []
            for _ in range(TIMES):
                straight += run_clients([partial(_pull, urls)])
                fronted += run_clients([partial(_pull, dict.fromkeys(urls, address))])
        finally:
            front.terminate()
    return statistics.median(straight), statistics.median(fronted)


def _pull(urls: dict[str, str], start: Start) -> float:
    with contextlib.ExitStack() as closing, ThreadPoolExecutor(len(urls)) as pool:
        queries = {name: closing.enter_context(Query(url)) for name, url in urls.items()}
        start()
        end = time.perf_counter() + _SECONDS
        return sum(pool.map(lambda name: _pull_until(queries[name], name, end), urls)) / _SECONDS / 1e6


def _pull_until(query: Query, store: str, end: float) -> float:
    taken = 0
    while time.perf_counter() < end:
        pages = query.record_pages(_TOPIC, 0, 0, store=store, max_messages=ANSWER_MESSAGES, max_bytes=ANSWER_BYTES)
        for page in pages:
            taken += len(page.data)
            if time.perf_counter() > end:
                break
    return float(taken)
