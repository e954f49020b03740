"""The cost of many messages: equal requests to a store of 1 million messages and to one of 100 million, in turn.

Both services run at the same time, and each request to the small store is followed by one to the large store. Every
place is read once before the clock starts, because the cost of the structure is measured, not that of the disk.
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import orjson
from numpy.typing import NDArray

from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.connection import Connection
from benchmarks.indexing import index_once
from benchmarks.processes import resident_bytes
from benchmarks.producers import PRODUCERS, Load
from benchmarks.pulls import ANSWER_BYTES, ANSWER_MESSAGES
from benchmarks.report import Result, Row
from benchmarks.rows.lookup import Keys
from benchmarks.rows.start import Started, start_to_serving
from benchmarks.stack import FILE_SIZES, running
from benchmarks.stores import LARGE_BATCH, append_log, passing_store
from tidemark.local.local_stack import QUERY, LocalStack
from tidemark.settings.engine import Engine
from tidemark.store.paths import StorePaths

MESSAGES = {"small": 1_000_000, "large": 100_000_000}
_LEAST_MESSAGES = 400_000  # so that answers at the front, in the middle and at the end have different records
_BODY_BYTES = 100
_LOG_FILE_BYTES = int(FILE_SIZES["TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES"])  # a start reads most of the last file
_BYTES_A_MESSAGE = 320  # of log, queues and key index, with both keys of a message
_TOPIC = "bench"
_ROUNDS = 4
_STARTS = 4  # the first one is not counted
_PLACES, _LARGE_PLACES = 500, 16  # of a round; the latter for answers of 4 MiB
_PLAIN = {"TIDEMARK_PIPELINE": Engine.PLAIN.value}  # without the start of a JVM, which is several seconds
_RATIO_TARGET = "≤ 1.2"
_PARTS = {"front": 0.0, "middle": 0.5, "end": 1.0}
_START_S = {"start_pull": "start to the first pull", "start_append": "start to the first append"}
_REQUESTS_MS = {
    "key": "lookup by key",
    "id": "lookup by message id",
    "time": "queue offset by time",
    "bounds": "offset bounds of a queue",
    **{f"one_{part}": f"pull of one message, {part} of the queue" for part in _PARTS},
    **{f"raw_{part}": f"raw pull of 4 MiB, {part} of the queue" for part in _PARTS},
}
_OF_ONE_MESSAGE = {"key", "id", *(f"one_{part}" for part in _PARTS)}
FIGURES = {
    **{figure: (name, "s") for figure, name in _START_S.items()},
    **{figure: (f"{name}, p50", "ms") for figure, name in _REQUESTS_MS.items()},
    "memory": ("memory of the query service", "MB"),
}


class Store(NamedTuple):
    """One of the two stores. messages: of all queues together; log_end: physical offset after the last one."""

    data: Path
    messages: int
    log_end: int


def _measure(folder: Path, scale: float) -> Result:
    large = max(_LEAST_MESSAGES, round(MESSAGES["large"] * scale))
    counts = {"small": min(MESSAGES["small"], large), "large": large}
    require_space(folder, sum(counts.values()))
    with contextlib.ExitStack() as stack:
        stores = {size: stack.enter_context(_made(folder / f"growth-{size}", count)) for size, count in counts.items()}
        figures = _starts(stores)
        running_on = {size: stack.enter_context(running(store.data, QUERY)) for size, store in stores.items()}
        figures |= _requests(stores, running_on)
        figures["memory"] = {
            size: resident_bytes(local.services[QUERY].pid) / 1e6 for size, local in running_on.items()
        }
        return Result(rows_of(figures, stores), [])


def require_space(folder: Path, messages: int) -> None:
    """Raise RuntimeError unless *folder* has room for stores with this number of messages."""
    needed, free = messages * _BYTES_A_MESSAGE, shutil.disk_usage(folder).free
    if needed > free:
        raise RuntimeError(
            f"stores of {messages:,} messages need {needed / 1e9:.0f} GB, but {folder} has {free / 1e9:.0f} GB free: "
            f"choose another folder (BENCH_FOLDER) or fewer messages (BENCH_SCALE)"
        )


@contextlib.contextmanager
def _made(data: Path, messages: int) -> Iterator[Store]:
    """Yield a store of about *messages*, indexed, and delete it afterwards."""
    batches = round(messages / LARGE_BATCH / PRODUCERS)
    with passing_store(data):
        append_log(data, Load(_TOPIC, LARGE_BATCH, _BODY_BYTES, batches, keyed=True))
        log_end = index_once(data).end_offset
        yield Store(data, batches * LARGE_BATCH * PRODUCERS, log_end)


def _starts(stores: dict[str, Store]) -> dict[str, dict[str, float]]:
    """Return the median seconds of starts of all services, the stores in turn."""
    started: dict[str, list[Started]] = {size: [] for size in stores}
    for _ in range(_STARTS):
        for size, store in stores.items():
            started[size].append(start_to_serving(store.data, _TOPIC, settings=_PLAIN))
    counted = {size: times[1:] for size, times in started.items()}
    return {
        "start_pull": {size: statistics.median(each.pull_s for each in times) for size, times in counted.items()},
        "start_append": {size: statistics.median(each.append_s for each in times) for size, times in counted.items()},
    }


def _requests(stores: dict[str, Store], running_on: dict[str, LocalStack]) -> dict[str, dict[str, float]]:
    """Return the median ms of each kind of request by the store's size."""
    places = {size: (urlsplit(running_on[size].query_url).netloc, stores[size].messages) for size in stores}
    (times,) = run_clients([partial(_ask, places)])
    return {
        kind: {size: float(np.median(values)) for size, values in by_size.items()} for kind, by_size in times.items()
    }


def _ask(places: dict[str, tuple[str, int]], start: Start) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return the ms of each request, by its kind and the store's size."""
    askers = {size: _Asker(*place) for size, place in places.items()}
    with contextlib.ExitStack() as stack:
        for asker in askers.values():
            asker.connect(stack)  # again, because the service closes a connection that was idle meanwhile
        start()
        times: dict[str, dict[str, list[float]]] = {kind: {size: [] for size in askers} for kind in _REQUESTS_MS}
        for _ in range(_ROUNDS):
            for kind, by_size in times.items():
                for number in range(_LARGE_PLACES if kind.startswith("raw") else _PLACES):
                    for size in sorted(askers, reverse=number % 2 == 1):  # each store is the first one in turn
                        by_size[size].append(askers[size].timed(kind, number))
        return {kind: {size: np.array(values) for size, values in by_size.items()} for kind, by_size in times.items()}


class _Asker:
    """Requests to one store: the paths of each kind of request, each sent once so far."""

    def __init__(self, address: str, messages: int) -> None:
        self._address = address
        self._of_queue = messages // PRODUCERS
        with contextlib.ExitStack() as stack:
            self.connect(stack)
            self._paths = self._all_paths()
            self._warm_up()

    def connect(self, stack: contextlib.ExitStack) -> None:
        """Use a new connection, which *stack* closes."""
        self._connection = stack.enter_context(Connection(self._address))

    def timed(self, kind: str, number: int) -> float:
        """Return the ms of request *number* of this kind."""
        path, accept = self._paths[kind][number], _accept(kind)
        before = time.perf_counter()
        self._connection.get(path, accept)
        return (time.perf_counter() - before) * 1000

    def _warm_up(self) -> None:
        """Send each request once, and require that answers have the expected size."""
        for kind, paths in self._paths.items():
            for path in paths:
                if kind in _OF_ONE_MESSAGE:
                    self._message(path)
                    continue
                size = len(self._connection.get(path, _accept(kind)))
                is_full = ANSWER_BYTES - 1024 <= size <= ANSWER_BYTES
                _require(is_full or not kind.startswith("raw"), f"{path}: {size} bytes instead of 4 MiB")

    def _message(self, path: str) -> Any:
        """Return the message of an answer. Raises RuntimeError unless there is exactly one."""
        messages = orjson.loads(self._connection.get(path))["messages"]
        _require(len(messages) == 1, f"{path}: {len(messages)} messages instead of one")
        return messages[0]

    def _all_paths(self) -> dict[str, list[str]]:
        of_topic = f"/v1/topics/{_TOPIC}"
        by_key = [f"{of_topic}/messages?key={key}" for key in Keys(self._of_queue).draw(_PLACES, seed=1)]
        found = [self._message(path) for path in by_key]
        return {
            "key": by_key,
            "id": [f"/v1/messages/{message['offset_msg_id']}" for message in found],
            "time": [
                f"{of_topic}/queues/{message['queue_id']}/offset?time={message['store_timestamp_ms']}"
                for message in found
            ],
            "bounds": [f"{of_topic}/queues/{number % PRODUCERS}" for number in range(_PLACES)],
            **{f"one_{part}": self._pulls(where, _PLACES, "&max_messages=1") for part, where in _PARTS.items()},
            **{
                f"raw_{part}": self._pulls(
                    where,
                    _LARGE_PLACES,
                    f"&max_messages={ANSWER_MESSAGES}&max_bytes={ANSWER_BYTES}&verify=reader",
                )
                for part, where in _PARTS.items()
            },
        }

    def _pulls(self, where: float, count: int, limits: str) -> list[str]:
        """Return pulls near a part of each queue, at least a large answer before its end."""
        first = int(where * (self._of_queue - ANSWER_MESSAGES))
        return [
            f"/v1/topics/{_TOPIC}/queues/{number % PRODUCERS}/messages?offset={first + number}{limits}"
            for number in range(count)
        ]


def _accept(kind: str) -> str:
    return "application/octet-stream" if kind.startswith("raw") else "application/json"


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(text)


def rows_of(figures: dict[str, dict[str, float]], stores: dict[str, Store]) -> list[Row]:
    """Return the rows of both stores, and the ratios. figures: by the figure's name and the store's size."""
    rows = []
    for size, store in stores.items():
        files = len(list(StorePaths(store.data).index.iterdir()))
        note = f"{store.messages:,} messages of {_BODY_BYTES} B, {files} key index files, the last log file "
        note += f"{store.log_end % _LOG_FILE_BYTES / 1e6:,.0f} MB full; warm: each place read before"
        rows += [
            Row(_key(size, figure), f"{size} store: {name}", figures[figure][size], unit, "", note)
            for figure, (name, unit) in FIGURES.items()
        ]
    note = f"{stores['large'].messages:,} messages relative to {stores['small'].messages:,}"
    for figure, (name, _) in FIGURES.items():
        ratio = figures[figure]["large"] / figures[figure]["small"]
        rows.append(Row(_key("ratio", figure), f"messages, ratio: {name}", ratio, "×", _RATIO_TARGET, note))
    return rows


def _key(of: str, figure: str) -> str:
    return f"growth_{of}_{figure}" if of == "ratio" else f"growth_{of}_{figure}_{FIGURES[figure][1].lower()}"


_KEYS = tuple(_key(of, figure) for of in (*MESSAGES, "ratio") for figure in FIGURES)
BENCHMARKS = (Benchmark("growth", _KEYS, _measure, when_named=True),)
