"""History: the sent messages with their promises, and the check that reads keep all of them."""

from __future__ import annotations

from collections.abc import Iterable

from tests.bodies import body_of

from .rocket_client import Answer, ToSend

Queue = tuple[str, int]  # topic, queue id
Reading = dict[Queue, list[Answer]]  # every message of every queue, in order


class History:
    """The history over all legs of a round, on both sides. Messages are identified by their bodies.

    Delayed ones may be repeated: a killed broker's schedule restarts at its last saved offset.
    """

    def __init__(self) -> None:
        self.acknowledged: dict[tuple[str, int, int], ToSend] = {}  # by topic, queue id and queue offset
        self.committed: dict[bytes, ToSend] = {}  # in a transaction, and seen since: no answer has their place
        self.committing: dict[bytes, ToSend] = {}  # a client does not wait for the answer to its commit
        self.delayed: dict[bytes, ToSend] = {}  # repeated when their time has come
        self.uncertain: dict[bytes, ToSend] = {}  # one-way, or without an answer
        self.rolled_back: set[bytes] = set()

    def expect(self, messages: Iterable[ToSend]) -> None:
        """Note messages that are about to be sent."""
        self.uncertain.update((message.body, message) for message in messages)

    def acknowledge(self, topic: str, queue_id: int, first: int, messages: Iterable[ToSend]) -> None:
        """Note that they are stored, from queue offset *first* on."""
        for queue_offset, message in enumerate(messages, first):
            place = topic, queue_id, queue_offset
            assert place not in self.acknowledged, f"{place} was acknowledged twice"
            self.acknowledged[place] = self.uncertain.pop(message.body)

    def commit(self, message: ToSend) -> None:
        """Note that its transaction is about to be committed."""
        self.committing[message.body] = self.uncertain.pop(message.body)

    def settle_commits(self) -> None:
        """Note that the broker has processed them: from now on they must be there."""
        self.committed.update(self.committing)
        self.committing.clear()

    def doubt_commits(self) -> None:
        """Note that the broker was killed: unprocessed commits are rolled back when it asks."""
        self.uncertain.update(self.committing)
        self.committing.clear()

    def delay(self, message: ToSend) -> None:
        """Note that it is stored, and is delivered later."""
        self.delayed[message.body] = self.uncertain.pop(message.body)

    def roll_back(self, message: ToSend) -> None:
        """Note that its transaction is rolled back: it must never be visible."""
        del self.uncertain[message.body]
        self.rolled_back.add(message.body)

    def check(self, reading: Reading) -> int:
        """Check acknowledged ⊆ stored ⊆ sent, each once, dense, as sent; return the number of messages."""
        seen: set[bytes] = set()
        places: dict[tuple[str, int, int], bytes] = {}
        by_body = {message.body: message for message in self.acknowledged.values()}
        known = {**self.uncertain, **self.delayed, **self.committed, **self.committing, **by_body}
        for (topic, queue_id), messages in reading.items():
            offsets = [message["queue_offset"] for message in messages]
            assert offsets == list(range(len(offsets))), f"queue {topic} {queue_id} is not dense"
            for message in messages:
                body = body_of(message)
                assert body not in self.rolled_back, f"rolled back, but visible: {_brief(message)}"
                assert body in known, f"never sent: {_brief(message)}"
                assert body not in seen or body in self.delayed, f"twice: {_brief(message)}"
                assert _as_sent(message) == _wanted(known[body])
                seen.add(body)
                places[topic, queue_id, message["queue_offset"]] = body
        for place, sent in self.acknowledged.items():
            assert places.get(place) == sent.body, f"acknowledged at {place}, but missing"
        assert self.committed.keys() <= seen, "committed, but missing"
        return len(seen)


def _brief(message: Answer) -> str:
    return f"{message['topic']} {message['queue_id']} {message['queue_offset']} at {message['physical_offset']}"


def _as_sent(message: Answer) -> Answer:
    properties = message["properties"]
    return {
        "flag": message["flag"],
        "tag": properties.get("TAGS", ""),
        "keys": properties.get("KEYS", ""),
        "properties": {name: value for name, value in properties.items() if name in ("区域", "trace")},
    }


def _wanted(message: ToSend) -> Answer:
    return {
        "flag": message.flag,
        "tag": message.tag,
        "keys": " ".join(message.keys),
        "properties": dict(message.properties),
    }
