"""A consumer over HTTP: a thread for each queue of one topic, which takes every message out of every answer."""

from __future__ import annotations

import enum
import http.client
import struct
import time
import urllib.parse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.clients import Start, run_clients
from tidemark.format import message
from tidemark.format.record import HEAD

ANSWER_BYTES = 4 << 20
ANSWER_MESSAGES = 32_768
_SIZE = struct.Struct(">i")


class Form(enum.StrEnum):
    """What a consumer asks for, as the Accept header says it."""

    RECORDS = "application/octet-stream"
    ARROW = "application/vnd.apache.arrow.stream"
    JSON = "application/json"


class Pulls(NamedTuple):
    """What one consumer got, answer by answer: when (s of the monotonic clock), how many messages, bytes of bodies."""

    times: NDArray[np.float64]
    messages: NDArray[np.float64]
    body_bytes: NDArray[np.float64]
    seconds: float


class Place(NamedTuple):
    """Where to pull, and how much at once."""

    url: str
    topic: str
    queues: int
    form: Form
    max_messages: int = ANSWER_MESSAGES


class _Answer(NamedTuple):
    messages: int
    body_bytes: int
    next_offset: int
    max_offset: int


def pull(place: Place, *, warm_up_s: float, seconds: float) -> Pulls:
    """Pull for *seconds*, again from the start where a queue ends. Raises for any answer that is not as asked for."""
    (pulls,) = run_clients([partial(_pull, place, warm_up_s, seconds)])
    return pulls


def _pull(place: Place, warm_up_s: float, seconds: float, start: Start) -> Pulls:
    def pull_queue(queue_id: int, end: float) -> list[tuple[float, int, int]]:
        with Puller(place) as puller:
            return puller.pull_until(queue_id, end)

    with ThreadPoolExecutor(place.queues) as pool:

        def pull_all(duration_s: float) -> list[tuple[float, int, int]]:
            end = time.perf_counter() + duration_s
            answers = pool.map(partial(pull_queue, end=end), range(place.queues))
            return [answer for answers_of_queue in answers for answer in answers_of_queue]

        pull_all(warm_up_s)
        start()
        answers = pull_all(seconds)
    times, messages, body_bytes = (np.array(column, np.float64) for column in zip(*answers, strict=True))
    return Pulls(times, messages, body_bytes, seconds)


class Puller:
    """A connection that pulls queues of one topic after the other."""

    def __init__(self, place: Place) -> None:
        self._place = place
        address = urllib.parse.urlsplit(place.url)
        assert address.hostname is not None, "a URL of ours"
        self._connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        self._take = _TAKE[place.form]

    def pull_until(self, queue_id: int, end: float) -> list[tuple[float, int, int]]:
        """(when, messages, bytes of bodies) of each answer until the clock says *end*."""
        answers: list[tuple[float, int, int]] = []
        offset = 0
        while True:
            answer = self.pull(self._place.topic, queue_id, offset)
            now = time.perf_counter()
            if now > end:
                return answers
            answers.append((now, answer.messages, answer.body_bytes))
            offset = answer.next_offset if answer.next_offset < answer.max_offset else 0

    def pull_all(self, topic: str, queue_id: int) -> int:
        """Messages of a whole queue."""
        offset = messages = 0
        while True:
            answer = self.pull(topic, queue_id, offset)
            messages += answer.messages
            offset = answer.next_offset
            if offset >= answer.max_offset:
                return messages

    def pull(self, topic: str, queue_id: int, offset: int) -> _Answer:
        """One answer; RuntimeError when it brought nothing or skipped a record."""
        arguments = {
            "offset": offset,
            "max_messages": self._place.max_messages,
            "max_bytes": ANSWER_BYTES,
            "body_encoding": "utf8",
        }
        path = f"/v1/topics/{topic}/queues/{queue_id}/messages?{urllib.parse.urlencode(arguments)}"
        self._connection.request("GET", path, headers={"accept": self._place.form.value})
        response = self._connection.getresponse()
        body = response.read()
        if response.status != http.client.OK:
            raise RuntimeError(f"{path}: {response.status} {body[:200]!r}")
        answer = self._take(body, response.headers)
        if not answer.messages:
            raise RuntimeError(f"{path}: no messages")
        return answer

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def __enter__(self) -> Puller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _take_records(body: bytes, headers: http.client.HTTPMessage) -> _Answer:
    """Find each record and check it, its CRC too, as a consumer of Kafka does."""
    at, places = 0, []
    while at < len(body):
        places.append(at)
        (size,) = _SIZE.unpack_from(body, at)
        at += size
    buffer = np.frombuffer(body, np.uint8)
    at_each = np.array(places, np.int64)
    sizes = np.diff(at_each, append=len(body))
    rows = message.check_records(
        buffer, places=at_each, physical_offsets=_physical_offsets(buffer, at_each), sizes=sizes
    )
    _require(not rows["fault"].any(), "a record is wrong")
    messages = message.unwrap_records(buffer, at_each, rows)
    return _Answer(len(messages), int(messages["body_length"].sum(dtype=np.int64)), *_offsets(headers))


def _physical_offsets(buffer: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """What the records say."""
    at: int = HEAD.fields["physical_offset"][1]  # type: ignore[index]
    raw: NDArray[np.uint8] = buffer[places[:, np.newaxis] + np.arange(at, at + 8)]
    return raw.view(">i8")[:, 0].astype(np.int64)


def _take_arrow(body: bytes, headers: http.client.HTTPMessage) -> _Answer:
    with pa.ipc.open_stream(body) as stream:
        table = stream.read_all()
    body_bytes = sum(_binary_size(chunk) for chunk in table["body"].chunks)
    return _Answer(table.num_rows, body_bytes, *_offsets(headers))


def _binary_size(bodies: pa.BinaryArray) -> int:
    offsets = np.frombuffer(bodies.buffers()[1], np.int32)
    return int(offsets[bodies.offset + len(bodies)] - offsets[bodies.offset])


def _take_json(body: bytes, headers: http.client.HTTPMessage) -> _Answer:
    page = orjson.loads(body)
    _require(not page["skipped"], "a record is wrong")
    sizes = sum(len(one["body"]) for one in page["messages"])
    return _Answer(len(page["messages"]), sizes, page["next_offset"], page["max_offset"])


def _offsets(headers: http.client.HTTPMessage) -> tuple[int, int]:
    _require(headers["tidemark-skipped"] == "[]", "a record is wrong")
    return int(headers["tidemark-next-offset"]), int(headers["tidemark-max-offset"])


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(text)


_TAKE: dict[Form, Callable[[bytes, http.client.HTTPMessage], _Answer]] = {
    Form.RECORDS: _take_records,
    Form.ARROW: _take_arrow,
    Form.JSON: _take_json,
}
