"""One request for messages of many queues: reads each in turn until the answer is full, or waits for any of them."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Sequence

from starlette.requests import Request

from tidemark.errors import StoreError
from tidemark.read.cached import FEW_BYTES, FEW_MESSAGES
from tidemark.read.look import look_again, one_look
from tidemark.read.store_moment import StoreMoment
from tidemark.read.unit_run import UnitsGoneError
from tidemark.read.watermark import Watermark

from ..state.read_threads import steady
from ..state.service_state import ServiceState
from .pull_response import PullBody
from .pulled import AnswerLimits, Pulled
from .queue_pull import QueuePull
from .read_together import ReadTogether

Make = Callable[[QueuePull, Pulled], PullBody]
Refuse = Callable[[QueuePull, StoreError], PullBody]
_Numbered = list[tuple[int, QueuePull]]
_FEW_QUEUES = 32
_LONG_S = 0.001  # after a check of all queues that took longer,
_REST = 10  # the next one comes after a pause of this many times its duration


class ManyQueues:
    """Answers one request.

    Args:
        limits: limits of all queues together.
        make: makes a queue's part of the answer from its messages.
        refuse: makes a queue's part from the error that it raised.
    """

    def __init__(
        self, state: ServiceState, pulls: Sequence[QueuePull], limits: AnswerLimits, make: Make, refuse: Refuse
    ) -> None:
        self._state = state
        self._pulls = list(enumerate(pulls))
        self._limits = limits
        self._make = make
        self._refuse = refuse
        self._moved: dict[int, Pulled] = {}  # queues without messages to return whose cursor has moved
        self._grown: _Numbered = []
        self._not_before = 0.0
        self.looked_at = len(pulls)  # number of queues read, in their order; the others may have messages, too

    async def run(self, request: Request) -> list[PullBody]:
        """Return the parts of the queues that have messages, an error, or another cursor than the request.

        A queue without new messages whose cursor the caller knows has no part.
        """
        deadline = time.monotonic() + self._limits.wait_ms / 1000
        pulls = self._pulls
        in_place = self._limits.wait_ms > 0 and len(pulls) <= _FEW_QUEUES and steady(self._are_at_known_end)
        while True:
            parts = await (self._state.reads.read_in_place if in_place else self._state.reads.read)(
                functools.partial(self._look, pulls)
            )
            if parts or time.monotonic() >= deadline:
                break
            pulls = [(number, pull) for number, pull in pulls if pull.ahead > 0]
            if not pulls:
                queues = [pull.place for _, pull in self._pulls]
                if not await self._state.watcher.wait_for_request(
                    request, self._has_any_grown, deadline, queues=queues
                ):
                    break
                pulls = self._grown
            in_place = self._is_light(pulls)
        return parts + (await self._state.reads.read(self._parts_of_moved) if self._moved else [])

    def _look(self, pulls: _Numbered) -> list[PullBody]:
        """Return the parts of *pulls*, as many as fit into the answer."""
        with one_look():
            return self._parts_of(pulls)

    def _parts_of(self, pulls: _Numbered) -> list[PullBody]:
        parts: list[PullBody] = []
        limits, room = self._limits, self._state.settings.query_max_body_bytes
        store = self._state.store
        now = StoreMoment.of_look(store, store.watermark())
        together = ReadTogether(self._state, [pull for _, pull in pulls], now, limits)
        for at, (number, pull) in enumerate(pulls):
            if limits.max_messages <= 0 or limits.max_bytes <= 0 or room <= 0:
                self.looked_at = number
                break
            pull.limit(limits)
            try:
                self._moved.pop(number, None)
                pulled = together.pulled(at, limits) or _looked(pull, now)
                if pulled.is_worth_waiting and self._may_wait(number, pull, pulled):
                    continue
                parts.append(pull.answer(pulled, functools.partial(self._make, pull)))
            except StoreError as error:
                parts.append(self._refuse(pull, error))
                continue
            room -= parts[-1].size
            limits = limits._replace(
                max_messages=limits.max_messages - pulled.result.message_count,
                max_bytes=limits.max_bytes - pulled.result.stored_bytes,
            )
        return parts

    def _may_wait(self, number: int, pull: QueuePull, pulled: Pulled) -> bool:
        """Return True if a queue without messages needs no part, because the caller knows its cursor as a number.

        Moves the cursor past the messages that are not returned.
        """
        pull.cursor = pulled.result.next_offset
        if not pull.is_named and pull.cursor != pulled.requested_offset:
            self._moved[number] = pulled
        return not pull.is_named

    def _parts_of_moved(self) -> list[PullBody]:
        pulls = dict(self._pulls)
        return [self._make(pulls[number], pulled) for number, pulled in sorted(self._moved.items())]

    def _are_at_known_end(self) -> bool:
        return all(pull.is_at_known_end() for _, pull in self._pulls)

    def _is_light(self, pulls: _Numbered) -> bool:
        """Return True if the look takes so little time that the event loop may do it."""
        if len(pulls) > _FEW_QUEUES or self._limits.max_bytes > FEW_BYTES:
            return False
        return sum(pull.ahead for _, pull in pulls) <= FEW_MESSAGES

    def _has_any_grown(self, watermark: Watermark) -> bool | None:
        """Return True if any queue has new messages; None shortly after a check that took long."""
        now = time.monotonic()
        if now < self._not_before:
            return None
        self._grown = self._pulls  # if the next lines raise, all queues are read, and the read reports the error
        seen = StoreMoment.of_look(self._state.store, watermark)
        self._grown = [(number, pull) for number, pull in self._pulls if _has_grown(pull, seen)]
        took_s = time.monotonic() - now
        if took_s > _LONG_S:
            self._not_before = now + took_s * _REST
        return bool(self._grown)


def _looked(pull: QueuePull, now: StoreMoment) -> Pulled:
    with contextlib.suppress(UnitsGoneError):
        return pull.look(now)
    look_again()
    return steady(pull.look)


def _has_grown(pull: QueuePull, now: StoreMoment) -> bool:
    """Return True if the queue has new messages, or if the check fails: the next look reports the error."""
    try:
        return pull.has_grown(now)
    except (StoreError, OSError):
        return True
