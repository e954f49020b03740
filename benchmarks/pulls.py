"""A consumer over HTTP with a thread for each queue of one topic, which extracts every message of every page."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.clients import Start, run_clients
from tidemark.client import Query
from tidemark.client.answers import TableVerify, Verify

ANSWER_BYTES = 4 << 20
ANSWER_MESSAGES = 32_768


class Form(enum.Enum):
    """The form of a pull's answer."""

    RECORDS = enum.auto()  # not checked
    SERVICE_CHECKED_RECORDS = enum.auto()
    CHECKED_RECORDS = enum.auto()  # each record is checked by the reader, as by a consumer of Kafka
    ARROW = enum.auto()
    CLIENT_ARROW = enum.auto()  # made by the client of records that it checks
    JSON = enum.auto()

    @property
    def answer_bytes(self) -> int:
        """Limit of an answer. A client that makes columns has a cost for each answer, so it asks for larger ones."""
        return 2 * ANSWER_BYTES if self is Form.CLIENT_ARROW else ANSWER_BYTES


class Pulls(NamedTuple):
    """The pages of one consumer: time (s of the monotonic clock), number of messages, bytes.

    The bytes are those of bodies, or of whole records if the form is records.
    """

    times: NDArray[np.float64]
    messages: NDArray[np.float64]
    bytes: NDArray[np.float64]
    seconds: float


class Place(NamedTuple):
    """The topic to pull from, and the limits of an answer."""

    url: str
    topic: str
    queues: int
    form: Form
    max_messages: int = ANSWER_MESSAGES


class _Taken(NamedTuple):
    messages: int
    bytes: int


def pull(place: Place, *, warm_up_s: float, seconds: float) -> Pulls:
    """Pull for *seconds*; at the end of a queue, start again. Raises for an unexpected answer."""
    (pulls,) = run_clients([partial(_pull, place, warm_up_s, seconds)])
    return pulls


def _pull(place: Place, warm_up_s: float, seconds: float, start: Start) -> Pulls:
    with Query(place.url) as query, ThreadPoolExecutor(place.queues) as pool:
        puller = Puller(query, place)

        def pull_all(duration_s: float) -> list[tuple[float, int, int]]:
            end = time.perf_counter() + duration_s
            pages = pool.map(partial(puller.pull_until, end=end), range(place.queues))
            return [page for pages_of_queue in pages for page in pages_of_queue]

        pull_all(warm_up_s)
        start()
        pages = pull_all(seconds)
    times, messages, body_bytes = (np.array(column, np.float64) for column in zip(*pages, strict=True))
    return Pulls(times, messages, body_bytes, seconds)


class Puller:
    """Pulls the queues of a topic, with read-ahead of a page where the client supports it. Thread-safe."""

    def __init__(self, query: Query, place: Place) -> None:
        self._query = query
        self._limits: dict[str, Any] = {"max_messages": place.max_messages, "max_bytes": place.form.answer_bytes}
        self._topic = place.topic
        forms: dict[Form, Callable[[str, int], Iterator[_Taken]]] = {
            Form.RECORDS: partial(self._records, "none"),
            Form.SERVICE_CHECKED_RECORDS: partial(self._records, "service"),
            Form.CHECKED_RECORDS: partial(self._records, "client"),
            Form.ARROW: partial(self._tables, "service"),
            Form.CLIENT_ARROW: partial(self._tables, "client"),
            Form.JSON: self._rows,
        }
        self._pages = forms[place.form]

    def pull_until(self, queue_id: int, end: float) -> list[tuple[float, int, int]]:
        """Return (time, messages, bytes) of each page until the time *end*."""
        taken: list[tuple[float, int, int]] = []
        while True:
            for page in self._pages(self._topic, queue_id):
                now = time.perf_counter()
                if now > end:
                    return taken
                taken.append((now, page.messages, page.bytes))
            _require(bool(taken), "the queue is empty")

    def pull_all(self, topic: str, queue_id: int) -> int:
        """Pull a whole queue and return its number of messages."""
        return sum(page.messages for page in self._pages(topic, queue_id))

    def _records(self, verify: Verify, topic: str, queue_id: int) -> Iterator[_Taken]:
        for page in self._query.record_pages(topic, queue_id, 0, verify=verify, **self._limits):
            _require(not page.skipped, "a record is wrong")
            yield _Taken(page.message_count, len(page.data))

    def _tables(self, verify: TableVerify, topic: str, queue_id: int) -> Iterator[_Taken]:
        for table in self._query.tables(topic, queue_id, 0, verify=verify, **self._limits):
            _require(table.schema.metadata[b"tidemark.skipped"] == b"[]", "a record is wrong")
            yield _Taken(table.num_rows, sum(_binary_size(chunk) for chunk in table["body"].chunks))

    def _rows(self, topic: str, queue_id: int) -> Iterator[_Taken]:
        offset, end = 0, 1
        while offset < end:
            page = self._query.pull(topic, queue_id, offset, body_encoding="utf8", **self._limits)
            _require(not page["skipped"], "a record is wrong")
            yield _Taken(len(page["messages"]), sum(len(one["body"]) for one in page["messages"]))
            offset, end = page["next_offset"], page["max_offset"]


def _binary_size(bodies: pa.BinaryArray) -> int:
    offsets = np.frombuffer(bodies.buffers()[1], np.int32)
    return int(offsets[bodies.offset + len(bodies)] - offsets[bodies.offset])


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(text)
