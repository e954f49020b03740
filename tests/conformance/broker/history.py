"""History: what was sent on which promise, and whether what is read keeps them all."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from .rocket_client import Answer, ToSend

Queue = tuple[str, int]  # topic, queue id
Reading = dict[Queue, list[Answer]]  # every message of every queue, in order


class History:
    """Over all legs of a round, whichever side took the messages. Messages are known by their bodies.

    Delayed ones may be shown again: a killed broker's schedule starts again where it was saved last.
    """

    def __init__(self) -> None:
        self.acknowledged: dict[tuple[str, int, int], ToSend] = {}  # by topic, queue id and queue offset
        self.committed: dict[bytes, ToSend] = {}  # in a transaction, and seen since: no answer tells their place
        self.committing: dict[bytes, ToSend] = {}  # a client does not wait for the answer to its commit
        self.delayed: dict[bytes, ToSend] = {}  # shown when their time has come
        self.uncertain: dict[bytes, ToSend] = {}  # one-way, or no answer came
        self.rolled_back: set[bytes] = set()

    def expect(self, messages: Iterable[ToSend]) -> None:
        """They are about to be sent."""
        self.uncertain.update((message.body, message) for message in messages)

    def acknowledge(self, topic: str, queue_id: int, first: int, messages: Iterable[ToSend]) -> None:
        """They are stored, from queue offset *first* on."""
        for queue_offset, message in enumerate(messages, first):
            place = topic, queue_id, queue_offset
            assert place not in self.acknowledged, f"{place} was given twice"
            self.acknowledged[place] = self.uncertain.pop(message.body)

    def commit(self, message: ToSend) -> None:
        """Its transaction is about to be committed."""
        self.committing[message.body] = self.uncertain.pop(message.body)

    def settle_commits(self) -> None:
        """The broker has worked them off: they must be there from now on."""
        self.committed.update(self.committing)
        self.committing.clear()

    def doubt_commits(self) -> None:
        """The broker was killed: what it had not worked off is rolled back when it asks."""
        self.uncertain.update(self.committing)
        self.committing.clear()

    def delay(self, message: ToSend) -> None:
        """It is stored, to be shown later."""
        self.delayed[message.body] = self.uncertain.pop(message.body)

    def roll_back(self, message: ToSend) -> None:
        """Its transaction is rolled back: nobody may ever see it."""
        del self.uncertain[message.body]
        self.rolled_back.add(message.body)

    def check(self, reading: Reading) -> int:
        """Acknowledged ⊆ stored ⊆ sent, each once, dense, as it was sent; how many messages there are."""
        seen: set[bytes] = set()
        places: dict[tuple[str, int, int], bytes] = {}
        by_body = {message.body: message for message in self.acknowledged.values()}
        known = {**self.uncertain, **self.delayed, **self.committed, **self.committing, **by_body}
        for (topic, queue_id), messages in reading.items():
            offsets = [message["queue_offset"] for message in messages]
            assert offsets == list(range(len(offsets))), f"queue {topic} {queue_id} is not dense"
            for message in messages:
                body = base64.b64decode(message["body"])
                assert body not in self.rolled_back, f"rolled back, and shown: {_brief(message)}"
                assert body in known, f"never sent: {_brief(message)}"
                assert body not in seen or body in self.delayed, f"twice: {_brief(message)}"
                assert _as_sent(message) == _wanted(known[body])
                seen.add(body)
                places[topic, queue_id, message["queue_offset"]] = body
        for place, sent in self.acknowledged.items():
            assert places.get(place) == sent.body, f"acknowledged at {place}, and not there"
        assert self.committed.keys() <= seen, "committed, and not there"
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
