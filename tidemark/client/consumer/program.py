"""Program: the program's part in a consumer: its callbacks, and the messages that its handler works on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tidemark.client.received_message import TopicQueue

if TYPE_CHECKING:
    from tidemark.client.consumer.handler_pool import Handling

OnQueues = Callable[[frozenset[TopicQueue]], None]


class Program:
    """The callbacks of one consumer; None for those that the program has not given. handling: while `consume` runs."""

    def __init__(self, on_assigned: OnQueues | None, on_revoked: OnQueues | None) -> None:
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self.handling: Handling | None = None

    def welcome(self, queues: frozenset[TopicQueue]) -> None:
        """Report new *queues*."""
        if self._on_assigned is not None:
            self._on_assigned(queues)

    def lose(self, queues: frozenset[TopicQueue], *, is_gone: bool, commit: Callable[[], None]) -> None:
        """Finish *queues*, which move to another member, and *commit* their positions.

        is_gone: they have moved already, so nothing of them can be committed.
        """
        try:
            if not is_gone:
                self._let_finish(queues, commit)
        finally:
            if self.handling is not None:
                self.handling.forget(queues)

    def _let_finish(self, queues: frozenset[TopicQueue], commit: Callable[[], None]) -> None:
        if self.handling is not None:
            self.handling.drain(queues)
        try:
            if self._on_revoked is not None:
                self._on_revoked(queues)
        finally:
            commit()

    def first_unfinished(self) -> Mapping[TopicQueue, int]:
        """Return, by queue, the lowest offset that is still being handled."""
        return {} if self.handling is None else self.handling.first_unfinished()
