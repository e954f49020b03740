"""Four kinds of clients of a group. Each notes its sends and reads in a history."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator

from tests.replication.nemesis.history import History, Outcome, Place, Read, Sent
from tidemark.client import Message, Producer, Query, SendResult, SendStatus
from tidemark.errors import (
    DeadlineExceededError,
    NextOffsetMismatchError,
    OffsetOutOfRangeError,
    RejectedError,
    StaleEpochError,
    StoreError,
    UnavailableError,
)

SINGLES, BATCHES, COMPARED = "singles", "batches", "compared"
QUEUES = 2
_TIMEOUT_S = 6.0
_BATCH = 10
_OPEN = (DeadlineExceededError, StaleEpochError)
_PAUSE_S = 0.02


class Client:
    """A thread that calls *step* until it is stopped. failure: an exception that no client may meet."""

    def __init__(self, step: Callable[[], None], close: Callable[[], object] = lambda: None) -> None:
        self.failure: BaseException | None = None
        self._close = close
        self._step = step
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._step()
            except BaseException as error:
                self.failure = error
                return

    def stop(self) -> None:
        """End the thread; raise the exception that it has met."""
        self._stopping.set()
        self._thread.join()
        self._close()
        if self.failure is not None:
            raise self.failure


class Sender:
    """Sends numbered messages of one client, and notes what becomes of them."""

    def __init__(self, name: str, producer: Producer, history: History) -> None:
        self._name = name
        self._producer = producer
        self._history = history
        self._numbers = itertools.count()

    def single(self) -> None:
        """Send one message."""
        key = self._key()
        self._note([key], lambda: self._producer.send(SINGLES, key.encode(), key=key))

    def batch(self) -> None:
        """Send a batch."""
        keys = [self._key() for _ in range(_BATCH)]
        self._note(keys, lambda: self._producer.send_batch([Message(BATCHES, b"b" * 200, keys=[key]) for key in keys]))

    def compared(self) -> None:
        """Send a message that is stored only if no other client was faster."""
        key = self._key()
        try:
            expected = self._producer.topics.describe(COMPARED)[1].get(0, 0)
        except StoreError:
            return
        self._note(
            [key],
            lambda: self._producer.send(COMPARED, key.encode(), key=key, queue_id=0, expected_next_offset=expected),
        )

    def _key(self) -> str:
        return f"{self._name}-{next(self._numbers)}"

    def _note(self, keys: list[str], send: Callable[[], SendResult]) -> None:
        began_s = time.monotonic()
        outcome = Outcome.OPEN
        places: list[Place | None] = [None] * len(keys)
        try:
            result = send()
        except _OPEN:
            pass
        except (UnavailableError, NextOffsetMismatchError):
            outcome = Outcome.REFUSED
        else:
            if result.status is SendStatus.PUT_OK:
                outcome = Outcome.ACKNOWLEDGED
                places = [(result.topic, result.queue_id, result.queue_offset + i) for i in range(len(keys))]
        ended_s = time.monotonic()
        self._history.add(
            *(Sent(key, began_s, ended_s, outcome, place) for key, place in zip(keys, places, strict=True))
        )
        time.sleep(_PAUSE_S)


class Reader:
    """Reads everything that one member shows, from the beginning."""

    def __init__(self, member: str, url: str, history: History) -> None:
        self._member = member
        self._query = Query(url, timeout_s=5)
        self._history = history
        self._cursors: dict[tuple[str, int], int] = {
            **{(topic, queue): 0 for topic in (SINGLES, BATCHES) for queue in range(QUEUES)},
            (COMPARED, 0): 0,
        }

    def step(self) -> None:
        """Read a page of each queue."""
        for (topic, queue), offset in self._cursors.items():
            try:
                page = self._query.pull(topic, queue, offset)
            except OffsetOutOfRangeError:
                raise
            except (UnavailableError, RejectedError):  # it is down, or does not have the topic yet
                continue
            read = [self._read((topic, queue, message["queue_offset"]), message) for message in page["messages"]]
            self._history.add(*read)
            self._cursors[topic, queue] = page["next_offset"]
        time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Close the connections."""
        self._query.close()

    def _read(self, place: Place, message: object) -> Read:
        return Read(self._member, " ".join(message["keys"]), place)  # type: ignore[index]


@contextlib.contextmanager
def clients(writers: str, urls: dict[str, str], history: History) -> Iterator[None]:
    """Let the clients of a group work. urls: of the members' query services."""
    producers = [Producer(writers, timeout_s=_TIMEOUT_S, wire=wire) for wire in ("remoting", "grpc")]
    senders = [Sender(f"c{number}", producers[number % 2], history) for number in range(6)]
    steps = [
        senders[0].single,
        senders[1].single,
        senders[2].batch,
        senders[3].batch,
        senders[4].compared,
        senders[5].compared,
    ]
    readers = [Reader(name, url, history) for name, url in urls.items()]
    working = [*map(Client, steps), *(Client(reader.step, reader.close) for reader in readers)]
    try:
        yield
    finally:
        for client in working:
            client.stop()
        for producer in producers:
            producer.close()
