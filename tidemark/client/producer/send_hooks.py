"""Hooks: functions that a producer calls around every send (docs/format.md §15)."""

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
    """Functions called for each message: in the sending thread, but after_send in the thread that takes the answer.

    forbid       called with the message; if it raises, the message is not sent, and the send raises that exception
    before_send  called with the message; an exception becomes a warning, and the message is sent
    after_send   called with the message and its SendResult or exception; an exception becomes a warning
    """

    forbid: Callable[[Message], None] | None = None
    before_send: Callable[[Message], None] | None = None
    after_send: Callable[[Message, Outcome], None] | None = None

    def begin(self, messages: Sequence[Message]) -> None:
        """Call `forbid` and `before_send` for *messages*; raise exceptions of `forbid`."""
        if self.forbid is not None:
            for message in messages:
                self.forbid(message)
        if self.before_send is not None:
            for message in messages:
                _call(self.before_send, message)

    def watch(self, messages: Sequence[Message], future: Future[SendResult]) -> None:
        """Call `after_send` for each of *messages* once *future* completes."""
        after_send = self.after_send
        if after_send is None:
            return

        def call_hook(done: Future[SendResult]) -> None:
            outcome = done.exception() or done.result()
            for message in messages:
                _call(after_send, message, outcome)

        future.add_done_callback(call_hook)


def _call(hook: Callable[..., None], *arguments: object) -> None:
    try:
        hook(*arguments)
    except Exception as error:
        warnings.warn(f"a hook of the producer raised {error!r}", RuntimeWarning, stacklevel=2)
