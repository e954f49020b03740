"""Hooks: what a program hangs into every send of a producer (docs/format.md §15)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from tidemark.client.message import Message
from tidemark.client.send_result import SendResult

Outcome = SendResult | BaseException


@dataclass(frozen=True)
class Hooks:
    """Called for each message, in the thread that sends it; after_send in the thread that takes the answer.

    forbid       may raise: then the message is not sent, and its send raises that
    before_send  with the message; what it raises is told as a warning, and the message is sent
    after_send   with the message and its SendResult, or the exception that its send raised; the same
    """

    forbid: Callable[[Message], None] | None = None
    before_send: Callable[[Message], None] | None = None
    after_send: Callable[[Message, Outcome], None] | None = None

    def begin(self, messages: Sequence[Message]) -> None:
        """Before *messages* are sent; raises what `forbid` does."""
        if self.forbid is not None:
            for message in messages:
                self.forbid(message)
        if self.before_send is not None:
            for message in messages:
                _call(self.before_send, message)

    def watch(self, messages: Sequence[Message], future: Future[SendResult]) -> None:
        """Call `after_send` for each of *messages* once their answer is there."""
        after_send = self.after_send
        if after_send is None:
            return

        def tell(done: Future[SendResult]) -> None:
            outcome = done.exception() or done.result()
            for message in messages:
                _call(after_send, message, outcome)

        future.add_done_callback(tell)


def _call(hook: Callable[..., None], *arguments: object) -> None:
    try:
        hook(*arguments)
    except Exception as error:
        warnings.warn(f"a hook of the producer raised {error!r}", RuntimeWarning, stacklevel=2)
