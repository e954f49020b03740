"""RocketClient: Apache RocketMQ's own Java client in a separate process, and its answers."""

from __future__ import annotations

import base64
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from benchmarks.peers.toolchain import Toolchain

Answer = dict[str, Any]
PULL_MOST = 32
_ROUTE_TIMEOUT_S = 120.0
_ROUTE_POLL_S = 0.05
_OPTIONS = ("-Xms128m", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Drocketmq.client.logUseSlf4j=true")


class RocketError(Exception):
    """The Java client's exception, as text."""


@dataclass(frozen=True)
class ToSend:
    """A message before it is sent."""

    body: bytes
    tag: str = ""
    keys: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0
    delay_level: int = 0

    def as_command(self) -> Answer:
        """Return the form that the Java side reads."""
        return {**self.__dict__, "body": base64.b64encode(self.body).decode()}


class RocketClient:
    """Producer, pull consumer and admin client of one broker. Not for concurrent use by two threads."""

    def __init__(self, toolchain: Toolchain, folder: Path, *, name_server: str, broker: str, broker_name: str) -> None:
        self._broker_name = broker_name
        command = toolchain.java("RocketClient", name_server, broker, options=(*_OPTIONS, f"-Duser.home={folder}"))
        with (folder / "client.out").open("wb") as errors:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _ask(self, do: str, **told: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(orjson.dumps({"do": do, "broker_name": self._broker_name, **told}) + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RocketError(f"the client ended with exit status {self._process.wait()}")
        answer = orjson.loads(line)
        if "error" in answer:
            raise RocketError(answer["error"])
        return answer.get("result")

    def create_topic(self, topic: str, *, queues: int, batch: bool = False) -> None:
        """Create *topic*; batch: with queue.type=BatchCQ, where a batch becomes one inner-batch record."""
        self._ask("create_topic", topic=topic, queues=queues, batch=batch)
        self.wait_until_known(topic)

    def wait_until_known(self, topic: str) -> None:
        """Wait until the name server knows *topic*: a broker registers shortly after its start, or after a creation."""
        deadline = time.monotonic() + _ROUTE_TIMEOUT_S
        while True:
            try:
                self.queues(topic)
            except RocketError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_ROUTE_POLL_S)
            else:
                return

    # Each `send…` returns {status, queue_id, queue_offset, message_id, offset_message_id}, or raises RocketError.

    def send(self, topic: str, queue_id: int, message: ToSend) -> Answer:
        """Send one message."""
        return self._send("single", topic, [message], queue_id=queue_id)

    def send_batch(self, topic: str, queue_id: int, messages: list[ToSend]) -> Answer:
        """Send one request for all: a legacy batch, or an inner batch if the topic has that type."""
        return self._send("batch", topic, messages, queue_id=queue_id)

    def send_oneway(self, topic: str, queue_id: int, message: ToSend) -> None:
        """Send without waiting for an answer."""
        self._send("oneway", topic, [message], queue_id=queue_id)

    def send_in_transaction(self, topic: str, message: ToSend, *, commit: bool) -> Answer:
        """Send a half message, then its commit or rollback."""
        return self._send("transaction", topic, [message], commit=commit)

    def _send(self, kind: str, topic: str, messages: list[ToSend], **told: Any) -> Answer:
        answer: Answer = self._ask(
            "send", kind=kind, topic=topic, messages=[each.as_command() for each in messages], **told
        )
        return answer

    def queues(self, topic: str) -> list[Answer]:
        """Return {queue_id, min_offset, max_offset} of each readable queue."""
        answers: list[Answer] = self._ask("queues", topic=topic)
        return answers

    def pull(self, topic: str, queue_id: int, offset: int, *, most: int = PULL_MOST, tags: str = "*") -> Answer:
        """Pull once: {status, next_offset, min_offset, max_offset, messages}; the client unwraps inner batches."""
        answer: Answer = self._ask("pull", topic=topic, queue_id=queue_id, offset=offset, most=most, tags=tags)
        return answer

    def read_queue(self, topic: str, queue: Answer) -> Iterator[Answer]:
        """Yield every message from the queue's minimum to its maximum, pull by pull; *queue*: one of `queues`."""
        offset, stuck = queue["min_offset"], 0
        while offset < queue["max_offset"]:
            answer = self.pull(topic, queue["queue_id"], offset)
            yield from answer["messages"]
            stuck = 0 if answer["next_offset"] > offset else stuck + 1
            assert stuck < 5, f"no progress from offset {offset}: {answer}"
            offset = answer["next_offset"]

    def offset_by_time(self, topic: str, queue_id: int, time_ms: int, *, upper: bool = False) -> int:
        """Return the broker's offset of the first (or with *upper* the last) message at that store time."""
        boundary = "upper" if upper else "lower"
        offset: int = self._ask("offset_by_time", topic=topic, queue_id=queue_id, time_ms=time_ms, boundary=boundary)
        return offset

    def query_key(self, topic: str, key: str, *, most: int = 1000) -> list[int]:
        """Return the ascending physical offsets of the messages that have this key."""
        offsets: list[int] = self._ask("query_key", topic=topic, key=key, most=most)
        return offsets

    def view(self, topic: str, message_id: str) -> Answer:
        """Return the message of an offset message id, or of a unique key."""
        answer: Answer = self._ask("view", topic=topic, id=message_id)
        return answer
