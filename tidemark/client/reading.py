"""Reading: the queues a consumer has now, a cursor in each, and the pulls that fill them. One thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Literal, Protocol, TypeVar

from tidemark.client.assigned import Assigned
from tidemark.client.cursor import Cursor, Cursors
from tidemark.client.membership import Assignment
from tidemark.client.problems import Json
from tidemark.client.pulls import Fetched, Pulls
from tidemark.client.received import ReceivedMessage, TopicQueue
from tidemark.errors import OffsetError, UnavailableError

P = TypeVar("P", bound="Page")
OutOfRange = Literal["error", "earliest", "latest"]
_log = logging.getLogger(__name__)
_PAGES_AHEAD = 2
_OUTAGE_S = 60.0
_GLANCE_S = 1.0  # after so long a wait looks whether the assignment has changed


class Page(Protocol):
    """What one pull came to, in whichever form."""

    @property
    def skipped(self) -> list[Json]: ...


class OnLost(Protocol):
    """What is told of queues that are lost."""

    def __call__(self, cursors: Cursors, *, is_gone: bool) -> None: ...


class Reading:
    """What a Consumer reads.

    make_pulls     of answers in a form: where messages come from
    begin          where a queue begins of which nothing is on record
    on_lost        told of queues that go to others, before they are let go of; is_gone: they have gone already
    on_new         told of queues that have come
    """

    def __init__(
        self,
        assigned: Assigned,
        *,
        make_pulls: Callable[[str], Pulls],
        begin: Callable[[TopicQueue], int | str],
        out_of_range: OutOfRange,
        on_lost: OnLost,
        on_new: Callable[[frozenset[TopicQueue]], None],
    ) -> None:
        self._assigned = assigned
        self._make_pulls = make_pulls
        self._begin = begin
        self._out_of_range = out_of_range
        self._on_lost, self._on_new = on_lost, on_new
        self._has_started = False
        self._assignment: Assignment | None = None
        self._cursors: dict[TopicQueue, Cursor] = {}  # the one served last stands last
        self._pulls: Pulls | None = None
        self._accept = ""
        self._has_answered = False

    @property
    def cursors(self) -> Cursors:
        """By queue."""
        return self._cursors

    def cursor(self, queue: tuple[str, int]) -> Cursor:
        """KeyError for a queue that is not read now."""
        if TopicQueue(*queue) not in self._cursors:
            self.follow()
        if TopicQueue(*queue) not in self._cursors:
            raise KeyError(f"queue {queue[1]} of {queue[0]} is not among those that this consumer reads now")
        return self._cursors[TopicQueue(*queue)]

    def follow(self) -> None:
        """Take the queues that are assigned now, and let go of the others."""
        if not self._has_started:
            self._assigned.start()
            self._has_started = True
        assignment = self._assigned.assignment()
        before = self._assignment
        if before is not None and assignment.offsets is before.offsets:
            return
        is_same = before is not None and before.incarnation == assignment.incarnation
        kept = {queue: cursor for queue, cursor in self._cursors.items() if is_same and queue in assignment.queues}
        lost = {queue: cursor for queue, cursor in self._cursors.items() if queue not in kept}
        if lost:
            self._on_lost(lost, is_gone=not is_same)
        self._cursors = kept
        if self._pulls is not None:
            self._pulls.keep_only(frozenset(kept))
        if lost and is_same:
            self._assigned.let_go(frozenset(lost))
        self._assignment = assignment
        self._add(assignment)

    def _add(self, assignment: Assignment) -> None:
        new = assignment.queues - self._cursors.keys()
        for queue in sorted(new):
            offset = assignment.offsets[queue]
            self._cursors[queue] = Cursor(queue, self._begin(queue) if offset is None else offset, committed=offset)
        if new:
            self._on_new(new)

    def take(self, most: int, wanted: Callable[[ReceivedMessage], bool]) -> list[ReceivedMessage]:
        """At most *most* messages of what has come, from the queues in turn."""
        taken: list[ReceivedMessage] = []
        for queue in list(self._cursors):
            cursor = self._cursors[queue]
            if cursor.is_empty or cursor.is_paused:
                continue
            taken += cursor.take(most - len(taken), wanted)
            self._cursors[queue] = self._cursors.pop(queue)
            if len(taken) >= most:
                break
        return taken

    def pause(self, queue: TopicQueue) -> None:
        """Take nothing of *queue*."""
        self.cursor(queue).is_paused = True
        if self._pulls is not None:
            self._pulls.drop(queue)

    # ── pulls ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def pull(self, accept: str) -> None:
        """See to it that pulls in the form *accept* are under way, two pages ahead."""
        if self._pulls is None or accept != self._accept:
            self._change_form(accept)
        assert self._pulls is not None
        for queue, cursor in self._cursors.items():
            if not cursor.is_paused and cursor.pages < _PAGES_AHEAD:
                self._pulls.want(queue, cursor.fetch_at)

    def _change_form(self, accept: str) -> None:
        if self._pulls is not None:
            self._pulls.close()
        for cursor in self._cursors.values():
            cursor.seek(cursor.position)
        self._accept = accept
        self._pulls = self._make_pulls(accept)

    def wait(self, timeout_s: float) -> Iterator[Fetched]:
        """Answers of queues that are still read, as they come; at most *timeout_s*, and less where something changes.

        raises UnavailableError when the service never answered, or does not since a minute
        """
        assert self._pulls is not None
        for fetched in self._pulls.fetched(min(timeout_s, _GLANCE_S)):
            if fetched.queue in self._cursors:
                yield fetched
        if self._pulls.unreachable is not None:
            since, error = self._pulls.unreachable
            if not self._has_answered or time.monotonic() - since > _OUTAGE_S:
                raise error
        self.follow()

    def answer(self, fetched: Fetched, decode: Callable[[Fetched], P]) -> P | None:
        """What *fetched* holds; None where it was no page: the cursor or a later try takes care of it.

        raises OffsetError as `out_of_range` says; what else was refused
        """
        assert self._pulls is not None
        try:
            page = decode(fetched)
        except OffsetError:
            if self._out_of_range == "error":
                raise
            self._cursors[fetched.queue].seek(self._out_of_range)
            return None
        except UnavailableError as error:
            self._pulls.failed(error)
            return None
        self._has_answered = True
        if page.skipped:
            _tell_of_skipped(fetched.queue, page.skipped)
        return page

    def add(self, fetched: Fetched) -> None:
        """Buffer its messages."""
        page = self.answer(fetched, lambda fetched: fetched.page())
        if page is not None:
            self._cursors[fetched.queue].add(
                page.messages,
                requested_offset=page.requested_offset,
                next_offset=page.next_offset,
                max_offset=page.max_offset,
            )

    def wake(self) -> None:
        """End a wait, from another thread."""
        if self._pulls is not None:
            self._pulls.wake()

    def close(self) -> None:
        """Give up on pulls, and on the queues."""
        if self._pulls is not None:
            self._pulls.close()
            self._pulls = None
        if self._has_started:
            self._assigned.close()


def _tell_of_skipped(queue: TopicQueue, skipped: list[Json]) -> None:
    """Damaged records cannot be handed out, but nobody shall believe that there were none."""
    _log.warning(
        "queue %d of %s: damaged records are left out: %s",
        queue.queue_id,
        queue.topic,
        ", ".join(f"{skip['reason']} at offset {skip['queue_offset']}" for skip in skipped),
    )
