"""Mutations: deliberate faults of the client, which show that the judge of the soak detects them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from unittest import mock

from tidemark.client import AsyncConsumer, ReceivedMessage, TopicQueue
from tidemark.client.consumer.group_member import GroupMember
from tidemark.client.consumer.retry_later import RetryLater


class Mutation(NamedTuple):
    """A fault of the client, and the rules of which at least one must report it."""

    put_in: Callable[[], object]
    rules: frozenset[str]


def _commit_ahead() -> None:
    """Commit one message more than was handed out."""
    commit = GroupMember.commit

    def mutated(self: GroupMember, offsets: Mapping[TopicQueue, int]) -> None:
        commit(self, {queue: offset + 1 for queue, offset in offsets.items()})

    mock.patch.object(GroupMember, "commit", mutated).start()


def _drop_retries() -> None:
    """Finish every fifth failed message without sending it back."""
    send, count = RetryLater.send, itertools.count(1)

    def mutated(self: RetryLater, message: ReceivedMessage) -> None:
        if next(count) % 5:
            send(self, message)

    mock.patch.object(RetryLater, "send", mutated).start()


def _ignore_seeks() -> None:
    """Accept every second seek, but continue from the old position."""
    seek, count = AsyncConsumer.seek, itertools.count(1)

    async def mutated(self: AsyncConsumer, queue: TopicQueue, place: Any) -> None:
        if next(count) % 2:
            await seek(self, queue, place)

    mock.patch.object(AsyncConsumer, "seek", mutated).start()


def _drop_cancelled() -> None:
    """Discard the messages of a poll that is cancelled while it returns."""
    poll = AsyncConsumer.poll

    async def mutated(self: AsyncConsumer, timeout_s: float = 1.0, **arguments: Any) -> list[ReceivedMessage]:
        messages = await poll(self, timeout_s, **arguments)
        await asyncio.sleep(0.02)  # a cancellation here loses them
        return messages

    mock.patch.object(AsyncConsumer, "poll", mutated).start()


MUTATIONS = {
    "commit-ahead": Mutation(_commit_ahead, frozenset({"committed ahead"})),
    "drop-retries": Mutation(_drop_retries, frozenset({"retry dropped", "dead letter missing"})),
    "ignore-seeks": Mutation(_ignore_seeks, frozenset({"group order"})),
    "drop-cancelled": Mutation(_drop_cancelled, frozenset({"group order", "never handed out", "committed ahead"})),
}
