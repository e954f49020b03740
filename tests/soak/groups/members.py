"""Members: threads that read like programs, by poll, tables and handlers, and that leave and join again at random."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.soak.group_events import Subscription
from tests.soak.groups.plan import FIRST_DELAY_LEVEL, failing_attempts
from tests.soak.groups.recorder import Recorder
from tests.soak.history import HistoryFile
from tests.soak.messages import content_of_body
from tidemark.client import Consumer, ReceivedMessage
from tidemark.errors import StoreError

COMMIT_INTERVAL_S = 0.5
SESSION_S = 10.0
_POLL_S = 0.3
_PAUSE_S = 0.3  # after an error
_SHORTEST_LIFE_S, _LONGEST_LIFE_S = 10.0, 40.0
MakeRecorder = Callable[[], Recorder]


class HandlerFailedError(Exception):
    """A failure of a message's handler, as planned."""


class Lives:
    """The successive memberships of one member. Each has its own name, and ends after a random time."""

    def __init__(
        self, name: str, subscription: Subscription, url: str, history: HistoryFile, stop: threading.Event, seed: str
    ) -> None:
        self.name = name
        self.subscription = subscription
        self.stop = stop
        self.choice = random.Random(f"{seed}-{name}")
        self._url = url
        self._history = history
        self._count = 0

    def recorder(self) -> Recorder:
        """Return the recorder of the next membership."""
        self._count += 1
        return Recorder(self._history, f"{self.name}.{self._count}", self.subscription.group)

    def settings(self, recorder: Recorder) -> dict[str, Any]:
        """Return the arguments of this membership's consumer. Memberships use both wires in turn."""
        return {
            "wire": ("remoting", "grpc")[self._count % 2],
            "topics": self.subscription.topics,
            "group": self.subscription.group,
            "url": self._url,
            "auto_commit_interval_s": COMMIT_INTERVAL_S,
            "session_timeout_s": SESSION_S,
            "max_messages": self.choice.choice((1, 10, 100)),
            "out_of_range": "earliest",
            "on_assigned": lambda _, queues: recorder.assigned(queues),
        }

    def end(self) -> float:
        """Return the monotonic time at which this membership ends."""
        return time.monotonic() + self.choice.uniform(_SHORTEST_LIFE_S, _LONGEST_LIFE_S)

    def run(self, live: Callable[[Lives, Recorder], None]) -> None:
        """Call *live* repeatedly until the process is stopped; errors of the client are recorded."""
        while not self.stop.is_set():
            recorder = self.recorder()
            try:
                live(self, recorder)
            except Exception as error:
                recorder.raised(error)
                self.stop.wait(_PAUSE_S)


def poll(lives: Lives, recorder: Recorder) -> None:
    """Read message by message for one membership."""
    end = lives.end()
    with Consumer(**lives.settings(recorder)) as consumer:
        while time.monotonic() < end and not lives.stop.is_set():
            invoked = time.monotonic()
            try:
                messages = consumer.poll(_POLL_S)
            except StoreError as error:  # the program keeps its consumer, as the documentation allows
                recorder.raised(error)
                lives.stop.wait(_PAUSE_S)
                continue
            recorder.delivered("poll", invoked, messages)


def poll_tables(lives: Lives, recorder: Recorder) -> None:
    """Read tables for one membership."""
    end = lives.end()
    with Consumer(**lives.settings(recorder)) as consumer:
        while time.monotonic() < end and not lives.stop.is_set():
            invoked = time.monotonic()
            recorder.delivered_table(invoked, consumer.poll_table(_POLL_S))


def handle(lives: Lives, recorder: Recorder, writer: str) -> None:
    """Handle messages for one membership. A handler fails as often as the plan states for the message."""
    stop = threading.Event()
    end = lives.end()

    def handler(message: ReceivedMessage) -> None:
        failed = message.reconsume_times < failing_attempts(content_of_body(message.body))
        recorder.handled(message, failed=failed)
        if failed:
            raise HandlerFailedError(f"attempt {message.reconsume_times + 1}")

    def watch() -> None:
        while time.monotonic() < end and not lives.stop.wait(0.1) and not stop.is_set():
            pass
        stop.set()

    def on_error(_: ReceivedMessage, error: BaseException) -> None:
        if not isinstance(error, HandlerFailedError):
            recorder.raised(error)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with Consumer(**lives.settings(recorder)) as consumer:
            consumer.consume(
                handler,
                workers=4,
                max_attempts=lives.subscription.max_attempts,
                first_delay_level=FIRST_DELAY_LEVEL,
                writer=writer,
                on_error=on_error,
                stop=stop,
            )
    finally:
        stop.set()
        watcher.join()
