"""Handout: the messages that a poll has taken, until the program has received them."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.client.consumer.queue_cursor import Cursor, CursorState
from tidemark.client.received_message import ReceivedMessage, TopicQueue


class _Loan(NamedTuple):
    cursor: Cursor
    state: CursorState


class Handout:
    """The result of one poll. Call `settle` when the program receives it, otherwise `give_back`.

    messages  the taken messages; empty for a table
    """

    def __init__(self) -> None:
        self.messages: list[ReceivedMessage] = []
        self._loans: dict[TopicQueue, _Loan] = {}

    def lend_of(self, cursor: Cursor) -> None:
        """Save the state of *cursor* before messages are taken from it."""
        self._loans.setdefault(cursor.named, _Loan(cursor, cursor.state))

    def add(self, other: Handout) -> None:
        """Take over the messages of *other*, which has other queues."""
        self.messages += other.messages
        self._loans |= other._loans

    def settle(self) -> list[ReceivedMessage]:
        """Move the positions past the messages, and return them.

        Messages of a queue with a seek or a loss in the meantime are left out.
        """
        invalid = self.settle_queues()
        return [message for message in self.messages if message.queue not in invalid] if invalid else self.messages

    def settle_queues(self) -> set[TopicQueue]:
        """Move the positions. Return the queues with a seek or a loss in the meantime; drop their messages."""
        if not self._loans:  # most polls wait, and settle an empty handout before
            return set()
        return {queue for queue, loan in self._loans.items() if not loan.cursor.settle(loan.state.generation)}

    def give_back(self) -> None:
        """Restore the positions, so that the messages are fetched again."""
        for loan in self._loans.values():
            loan.cursor.rewind(loan.state)
