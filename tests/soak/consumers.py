"""Consumers: threads that follow queues from their cursors, and threads that send all other requests."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from tests.soak.history import OK, UNAVAILABLE, Answer, Append, HistoryFile
from tests.soak.messages import CHURNED, QUEUES, is_keyed
from tests.soak.questions import Questions
from tidemark.format.message_id import encode_offset_message_id

_WAIT_MS = 300
_GAP_S, _PAUSE_S = 0.025, 0.25  # between requests; after an unanswered one
FORMS = ("json", "ndjson", "records")
ALL_QUEUES = [(topic, queue_id) for topic, count in QUEUES.items() for queue_id in range(count)]


class Rest:
    """Pauses between requests, and the end. slowness: 1 is full speed."""

    def __init__(self, stopping: threading.Event, slowness: float) -> None:
        self.stopping = stopping
        self._slowness = slowness

    def __call__(self, seconds: float) -> bool:
        """Pause; return True if another request follows."""
        return not self.stopping.wait(seconds * self._slowness)


class Follower:
    """Pulls all queues in turn, each from the last next_offset."""

    def __init__(self, name: str, url: str, history: HistoryFile, rest: Rest, seed: str) -> None:
        self.name = name
        self._questions = Questions(name, url, history)
        self._rest = rest
        self._choice = random.Random(f"{seed}-{name}")
        self._cursors = dict.fromkeys(ALL_QUEUES, 0)

    def run(self) -> None:
        """Run until it is stopped."""
        while not self._rest.stopping.is_set():
            for topic, queue_id in self._choice.sample(ALL_QUEUES, len(ALL_QUEUES)):
                self._pull(topic, queue_id)
                self._rest(_GAP_S)
        self._questions.close()

    def _pull(self, topic: str, queue_id: int) -> None:
        answer = self._questions.pull(
            topic,
            queue_id,
            self._cursors[topic, queue_id],
            form=self._choice.choice(FORMS),
            wait_ms=self._choice.choice((0, _WAIT_MS)),
            max_messages=self._choice.choice((1, 7, 100)),
        )
        if answer.outcome == OK and answer.next_offset is not None:
            self._cursors[topic, queue_id] = answer.next_offset
        else:
            self._rest(_PAUSE_S)


class Asker:
    """Sends random requests: for recently acknowledged and old messages, bounds, times, the watermark."""

    def __init__(self, name: str, url: str, writer_address: str, history: HistoryFile, rest: Rest, seed: str) -> None:
        self.name = name
        self._questions = Questions(name, url, history)
        self._history = history
        self._rest = rest
        self._choice = random.Random(f"{seed}-{name}")
        self._store_host = _host_bytes(writer_address)
        self._max_offsets = dict.fromkeys(ALL_QUEUES, 0)
        self._began_ms = time.time_ns() // 1_000_000

    def run(self) -> None:
        """Run until it is stopped."""
        kinds: list[Callable[[], Answer | None]] = [
            self._ask_by_id,
            self._ask_by_key,
            self._ask_own_write,
            self._ask_offset_at,
            self._ask_bounds,
            self._ask_again,
            self._questions.watermark,
        ]
        while self._rest(self._choice.uniform(0, 4 * _GAP_S)):
            answer = self._choice.choice(kinds)()
            if answer is not None:
                self._learn(answer)
        self._questions.close()

    def _learn(self, answer: Answer) -> None:
        if answer.outcome == UNAVAILABLE:
            self._rest(_PAUSE_S)
        elif answer.max_offset and answer.queue_id is not None:
            self._max_offsets[answer.topic, answer.queue_id] = answer.max_offset

    def _recent(self) -> tuple[Append, int] | None:
        """Return a recently acknowledged append, and the index of one of its messages."""
        append = self._history.pick_recent(self._choice)
        if append is None or append.topic in CHURNED:
            return None
        return append, self._choice.randrange(len(append.contents))

    def _ask_by_id(self) -> Answer | None:
        if (recent := self._recent()) is None:
            return None
        append, i = recent
        at = append.physical_offsets[i if len(append.physical_offsets) > 1 else 0]
        path = self._choice.choice((f"at/{at}", encode_offset_message_id(self._store_host, at)))
        wait_ms = self._choice.choice((0, _WAIT_MS))
        return self._questions.by_id(append.topic, append.contents[i], f"/v1/messages/{path}", wait_ms=wait_ms)

    def _ask_by_key(self) -> Answer | None:
        if (recent := self._recent()) is None or not is_keyed(recent[0].topic):
            return None
        append, i = recent
        name = append.contents[i].partition("/")[0]
        by_unique_key = i == 0 and self._choice.random() < 0.5  # the request id became that of the first message
        arguments = {"unique_key": f"request-{name}"} if by_unique_key else {"key": name}
        return self._questions.by_key(append.topic, append.contents[i], **arguments)

    def _ask_own_write(self) -> Answer | None:
        """Pull from an acknowledged offset that may not be visible yet."""
        if (recent := self._recent()) is None:
            return None
        append, i = recent
        offset = (append.queue_offset or 0) + i
        return self._questions.pull(append.topic, append.queue_id, offset, max_messages=5)

    def _ask_offset_at(self) -> Answer:
        topic, queue_id = self._choice.choice(ALL_QUEUES)
        now_ms = time.time_ns() // 1_000_000
        time_ms = self._choice.randrange(self._began_ms - 1000, now_ms + 1000)
        if self._choice.random() < 0.5 and (recent := self._recent()) is not None:
            append, _ = recent
            topic, queue_id = append.topic, append.queue_id
            time_ms = (append.store_ms or 0) + self._choice.randrange(-1, 2)
        return self._questions.offset_at(topic, queue_id, time_ms, self._choice.choice(("lower", "upper")))

    def _ask_bounds(self) -> Answer:
        return self._questions.bounds(*self._choice.choice(ALL_QUEUES))

    def _ask_again(self) -> Answer:
        """Pull a range that was visible before."""
        topic, queue_id = self._choice.choice(ALL_QUEUES)
        offset = self._choice.randrange(self._max_offsets[topic, queue_id] + 1)
        return self._questions.pull(topic, queue_id, offset, form=self._choice.choice(FORMS), max_messages=20)


def read_everything(url: str, history: HistoryFile, form: str) -> None:
    """Read every queue from its start to its end, as the final state."""
    questions = Questions(f"final-{form}", url, history, final=True)
    churned = [(topic, queue_id) for topic, count in CHURNED.items() for queue_id in range(count)]
    for topic, queue_id in (*ALL_QUEUES, *churned):
        cursor: int | str = "earliest" if topic in CHURNED else 0
        while True:
            answer = questions.pull(topic, queue_id, cursor, form=form, max_messages=1000)
            if answer.outcome != OK or answer.next_offset is None or answer.next_offset == cursor:
                break
            cursor = answer.next_offset
    questions.close()


def _host_bytes(address: str) -> bytes:
    ip, _, port = address.rpartition(":")
    return bytes(int(part) for part in ip.split(".")) + int(port).to_bytes(4, "big")
