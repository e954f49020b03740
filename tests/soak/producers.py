"""Producers: threads that append, and retry until they know the outcome.

A batch is retried on the same queue with the same request id, so that it is stored once. `OneByOne` is the loop;
the transport of a batch is a `Way`. `Streaming` is the client library's Producer with many sends in flight.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from tests.soak.history import ACKNOWLEDGED, REFUSED, UNKNOWN, Append, HistoryFile
from tests.soak.messages import CHURNED, LEDGER, ORDERS, QUEUES, named, next_name
from tests.soak.ways import Batch, Place, Way
from tidemark.client import Message, Producer, SendResult
from tidemark.client.errors.grpc_errors import is_retryable
from tidemark.client.wire.wire import Wire
from tidemark.errors import NextOffsetMismatchError, RejectedError, StoreError
from tidemark.status import status_of

FOR_EVER_S = 1e6
_USUAL_TIMEOUT_S, _SHORT_TIMEOUT_S = 5.0, 0.02  # the short one causes lost answers
_FORGETFUL = 0.1  # share of first answers that are discarded, as by a restarted client
_LONGEST_FORGOTTEN_S = 3.0  # long enough for a kill and a restart of the writer in between
_PAUSE_S = 0.1
_MAX_IN_FLIGHT = 16


class Pace:
    """The times of sends, and their end. per_s: batches a second of one producer."""

    def __init__(self, per_s: float) -> None:
        self.stopping = threading.Event()
        self.give_up = FOR_EVER_S  # monotonic time after which unknown outcomes are not retried
        self._gap_s = 1 / per_s

    def rest(self, choice: random.Random) -> bool:
        """Wait for the next send; return True if there is one."""
        return not self.stopping.wait(choice.uniform(0, 2 * self._gap_s))


class OneByOne:
    """Sends batch after batch, each until its outcome is known."""

    def __init__(self, name: str, way: Way, topics: Sequence[str], pace: Pace, history: HistoryFile, seed: str) -> None:
        self.name = name
        self._way = way
        self._topics = topics
        self._pace = pace
        self._history = history
        self._choice = random.Random(f"{seed}-{name}")
        self._sent = 0
        self._next: dict[int, int] = {}  # of the LEDGER's queues, as far as this producer knows

    def run(self) -> None:
        """Run until the pace ends."""
        while self._pace.rest(self._choice):
            self.send_one()
        self.close()

    def send_one(self) -> None:
        """Send one batch until its outcome is known."""
        self._history.add(self._send(self._make()))

    def close(self) -> None:
        """Close connections."""
        self._way.close()

    def _make(self) -> Batch:
        topic = self._choice.choice(self._topics)
        queue_id = self._choice.randrange({**QUEUES, **CHURNED}[topic])
        count = min(1 + int(self._choice.expovariate(1 / 4)), 40)
        names = [next_name(self.name, self._sent + i) for i in range(count)]
        self._sent += count
        expected = self._next.get(queue_id, 0) if topic == LEDGER else None
        return Batch(topic, queue_id, [named(name) for name in names], f"request-{names[0]}", expected)

    def _send(self, batch: Batch) -> Append:
        invoked, attempts, reason = time.monotonic(), 0, "no answer"
        forgets = self._choice.random() < _FORGETFUL
        while time.monotonic() < self._pace.give_up:
            attempts += 1
            hasty = self._choice.random() < 0.05 and attempts < 3
            try:
                place = self._way.append(batch, _SHORT_TIMEOUT_S if hasty else _USUAL_TIMEOUT_S)
            except NextOffsetMismatchError as error:
                self._next[batch.queue_id] = actual = int(error.facts["actual"] or 0)
                return _append(
                    self.name, batch, invoked, REFUSED, reason=status_of(error).reason, attempts=attempts, actual=actual
                )
            except StoreError as error:
                reason = status_of(error).reason
                if isinstance(error, RejectedError):
                    return _append(self.name, batch, invoked, REFUSED, reason=reason, attempts=attempts)
                time.sleep(_PAUSE_S)
                continue
            if place is not None and forgets:
                forgets, reason = False, "its answer was lost"
                self._pace.stopping.wait(self._choice.uniform(0, _LONGEST_FORGOTTEN_S))
            elif place is not None:
                self._next[batch.queue_id] = place.queue_offset + len(batch.messages)
                return _append(self.name, batch, invoked, ACKNOWLEDGED, place, attempts=attempts)
        return _append(self.name, batch, invoked, UNKNOWN, reason=reason, attempts=attempts)


class Streaming:
    """The client library's Producer: single messages, several in flight, in the order they were sent."""

    def __init__(self, name: str, address: str, wire: Wire, pace: Pace, history: HistoryFile, seed: str) -> None:
        self.name = name
        self._producer = Producer(address, timeout_s=FOR_EVER_S, wire=wire)
        self._pace = pace
        self._history = history
        self._choice = random.Random(f"{seed}-{name}")
        self._room = threading.Semaphore(_MAX_IN_FLIGHT)
        self._open: dict[int, tuple[Batch, float]] = {}  # unanswered sends by sequence
        self._lock = threading.Lock()

    def run(self) -> None:
        """Run until the pace ends and everything is answered, or given up."""
        sequence = 0
        while self._pace.rest(self._choice):
            for _ in range(self._choice.randrange(1, 6)):
                self._send(sequence)
                sequence += 1
        while self._open and time.monotonic() < self._pace.give_up:
            time.sleep(0.05)
        with self._lock:
            for number, (batch, invoked) in self._open.items():
                self._history.add(
                    _append(self.name, batch, invoked, UNKNOWN, sequence=number, reason="no answer in time")
                )
            given_up, self._open = bool(self._open), {}
        if not given_up:  # otherwise it would wait for the answers that do not come
            self._producer.close()

    def _send(self, sequence: int) -> None:
        while not self._room.acquire(timeout=0.5):
            if time.monotonic() >= self._pace.give_up:
                return
        name = next_name(self.name, sequence)
        queue_id = self._choice.randrange(QUEUES[ORDERS])
        batch = Batch(ORDERS, queue_id, [named(name)], f"request-{name}")
        invoked = time.monotonic()
        with self._lock:
            self._open[sequence] = batch, invoked
        message = Message(ORDERS, batch.messages[0].body, keys=[name])
        future = self._producer.send_async(message, queue_id=queue_id, request_id=batch.request_id)
        future.add_done_callback(lambda done: self._answered(sequence, done))

    def _answered(self, sequence: int, done: Future[SendResult]) -> None:
        self._room.release()
        with self._lock:
            if sequence not in self._open:
                return
            batch, invoked = self._open.pop(sequence)
        error = done.exception()
        if error is not None:
            refused = isinstance(error, StoreError) and not is_retryable(error)
            outcome, reason = REFUSED if refused else UNKNOWN, status_of(error).reason
            self._history.add(_append(self.name, batch, invoked, outcome, sequence=sequence, reason=reason))
            return
        sent = done.result()
        place = Place(
            sent.queue_offset,
            tuple(sent.physical_offsets),
            sent.end_physical_offset,
            sent.store_timestamp_ms,
            sent.duplicate,
            sent.term,
        )
        self._history.add(_append(self.name, batch, invoked, ACKNOWLEDGED, place, sequence=sequence))


def _append(
    client: str,
    batch: Batch,
    invoked: float,
    outcome: str,
    place: Place | None = None,
    *,
    sequence: int | None = None,
    reason: str = "",
    attempts: int = 1,
    actual: int | None = None,
) -> Append:
    """Return the append for the history; it is completed now, unless its outcome is unknown."""
    return Append(
        client,
        batch.topic,
        batch.queue_id,
        invoked,
        None if outcome == UNKNOWN else time.monotonic(),
        outcome,
        tuple(message.content for message in batch.messages),
        sequence=sequence,
        expected_next_offset=batch.expected_next_offset,
        actual_next_offset=actual,
        attempts=attempts,
        reason=reason,
        **({} if place is None else place._asdict()),
    )
