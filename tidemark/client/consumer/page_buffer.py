"""PageBuffer: the queues that a consumer reads now, a cursor for each, and the pulls that fill them. One thread."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Literal, Protocol, TypeVar

from tidemark.client.answers import SkippedAnswer
from tidemark.client.consumer.group_member import Assignment
from tidemark.client.consumer.handout import Handout
from tidemark.client.consumer.missing_topics import MISSING_PAUSE_S, MissingTopics
from tidemark.client.consumer.page_source import Fetched, Pulls
from tidemark.client.consumer.queue_assignment import QueueAssignment
from tidemark.client.consumer.queue_cursor import Cursor, Cursors, IsWanted
from tidemark.client.consumer.start_offsets import StartOffsets
from tidemark.client.received_message import TopicQueue
from tidemark.errors import OffsetError, OffsetTooSmallError, TopicNotFoundError, UnavailableError

P = TypeVar("P", bound="BufferedPage")
OutOfRange = Literal["error", "earliest", "latest"]
_log = logging.getLogger(__name__)
_PAGES_AHEAD = 2
_OUTAGE_S = 60.0
_GLANCE_S = 1.0  # longest wait before the next check of the assignment


class BufferedPage(Protocol):
    """The content of one pull's answer, in any form."""

    @property
    def skipped(self) -> list[SkippedAnswer]: ...


class OnLost(Protocol):
    """A callback for queues that this consumer loses."""

    def __call__(self, cursors: Cursors, *, is_gone: bool) -> None: ...


class PageBuffer:
    """The reading state of a Consumer.

    store          URL of the store, if the consumer reads several; else empty
    make_pulls     opens pulls with answers in a given form
    starts         resolves the start of a queue without a committed offset
    reset          returns the offset at which a queue continues if its offset does not exist, or raises the error
    on_lost        called with the queues that move to another member, before they are released. is_gone: they already
                   belong to another member
    on_new         called with newly assigned queues until it returns without an exception
    """

    def __init__(
        self,
        assigned: QueueAssignment,
        *,
        make_pulls: Callable[[str], Pulls],
        starts: StartOffsets,
        reset: Callable[[TopicQueue, OffsetError], int],
        on_lost: OnLost,
        on_new: Callable[[frozenset[TopicQueue]], None],
        store: str = "",
    ) -> None:
        self._assigned = assigned
        self._store = store
        self._make_pulls = make_pulls
        self._starts = starts
        self.decided: dict[TopicQueue, int] = {}  # positions to commit at once: starts, resets, seeks
        self._reset = reset
        self._on_lost, self._on_new = on_lost, on_new
        self._has_started = False
        self._assignment: Assignment | None = None
        self._cursors: OrderedDict[TopicQueue, Cursor] = OrderedDict()  # in the order in which `take` visits them
        self._unwelcomed: set[TopicQueue] = set()  # assigned, and `on_new` has not returned yet
        self._is_welcoming = False
        self._missing = MissingTopics()
        self._pulls: Pulls | None = None
        self._accept = ""
        self._has_answered = False

    @property
    def has_started(self) -> bool:
        """True once the queues are known."""
        return self._has_started

    @property
    def descriptors(self) -> list[int]:
        """The file descriptors of the pulls under way; see `Pulls.descriptors`."""
        return [] if self._pulls is None else self._pulls.descriptors

    @property
    def is_answered(self) -> bool:
        """False while the service does not answer, and pulls are repeated after a pause."""
        return self._pulls is None or self._pulls.unreachable is None

    @property
    def cursors(self) -> Cursors:
        """Return the cursors by queue."""
        return self._cursors

    def cursor(self, queue: tuple[str, int]) -> Cursor:
        """Return the cursor of *queue*; raise KeyError for a queue that this consumer does not read."""
        if TopicQueue(*queue) not in self._cursors:
            self.follow()
        if TopicQueue(*queue) not in self._cursors:
            raise KeyError(f"queue {queue[1]} of {queue[0]} is not among the queues that this consumer reads now")
        return self._cursors[TopicQueue(*queue)]

    def follow(self) -> None:
        """Add the newly assigned queues, and release the others.

        After an exception of a callback or of the network, the next call continues where this one stopped.
        """
        if not self._has_started:
            self._starts.prepare()
            self._assigned.start()
            self._has_started = True
        assignment = self._assigned.assignment()
        before = self._assignment
        if before is None or assignment.offsets is not before.offsets:
            self._release(assignment, is_same=before is not None and before.incarnation == assignment.incarnation)
            self._assignment = assignment._replace(offsets={})  # new cursors belong to this incarnation
            self._add(assignment)
            self._assignment = assignment  # last: if a line above raises, the next call does the rest
        if self._unwelcomed:
            self._welcome()

    def _release(self, assignment: Assignment, *, is_same: bool) -> None:
        lost = {
            queue: cursor for queue, cursor in self._cursors.items() if not is_same or queue not in assignment.queues
        }
        if not lost:
            return
        try:
            self._on_lost(lost, is_gone=not is_same)
        finally:  # even if the program's callback raised: another member waits for these queues
            for queue, cursor in lost.items():
                cursor.restart()
                self._cursors.pop(queue, None)
                self.decided.pop(queue, None)
            self._unwelcomed.difference_update(lost)
            if self._pulls is not None:
                self._pulls.keep_only(frozenset(self._cursors))
            if is_same:
                self._assigned.release(frozenset(lost))

    def _add(self, assignment: Assignment) -> None:
        for queue in sorted(assignment.queues - self._cursors.keys()):
            offset = assignment.offsets[queue]
            position = self._starts.begin(queue) if offset is None else offset
            if offset is None and isinstance(position, int):
                self.decided[queue] = position
            if self._assigned.has_seen_topics:
                self._missing.has_answered(queue.topic)
            self._unwelcomed.add(queue)
            self._cursors[queue] = Cursor(queue, position, committed=offset, store=self._store)

    def _welcome(self) -> None:
        """Call `on_new`; again at the next call if it raises, because the program may have wanted to seek."""
        if not self._is_welcoming:
            new = frozenset(self._unwelcomed)
            self._is_welcoming = True
            try:
                self._on_new(new)
                self._unwelcomed -= new
            finally:
                self._is_welcoming = False

    def take(self, most: int, is_wanted: IsWanted | None) -> Handout:
        """Take at most *most* buffered messages, from the queues in turn. is_wanted: None if all messages are.

        Raises an exception of *is_wanted* only if no message was taken; see `Cursor.take`.
        """
        handout = Handout()
        try:
            self._take(handout, most, is_wanted)
        except Exception:
            if not handout.messages:
                handout.settle()  # move past the unwanted messages before the failing one
                raise
        except BaseException:
            handout.give_back()
            raise
        return handout

    def _take(self, handout: Handout, most: int, is_wanted: IsWanted | None) -> None:
        errors: list[tuple[Cursor, Exception]] = []
        for queue, cursor in list(self._cursors.items()):
            if len(handout.messages) >= most:
                break
            if cursor.is_empty or cursor.is_paused:
                continue
            self._cursors.move_to_end(queue)
            handout.lend_of(cursor)
            try:
                cursor.take(most - len(handout.messages), is_wanted, handout.messages)
            except Exception as error:  # affects this queue only; the others continue
                errors.append((cursor, error))
        if errors and not handout.messages:
            for cursor, _ in errors:
                cursor.has_raised = True
            raise errors[0][1]

    def pause(self, queue: TopicQueue) -> None:
        """Stop taking messages of *queue*."""
        self.cursor(queue).is_paused = True
        if self._pulls is not None:
            self._pulls.drop(queue)

    # ── pulls ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def pull(self, accept: str) -> None:
        """Start pulls in the form *accept* for every queue with fewer than two buffered pages."""
        if self._pulls is None or accept != self._accept:
            self._change_form(accept)
        assert self._pulls is not None
        for queue, cursor in self._cursors.items():
            is_resting = cursor.retry_at > 0.0 and time.monotonic() < cursor.retry_at
            if not cursor.is_paused and not is_resting and cursor.pages < _PAGES_AHEAD:
                self._pulls.want(queue, cursor.fetch_at)

    def _change_form(self, accept: str) -> None:
        if self._pulls is not None:
            self._pulls.close()
            self._pulls = None
        for cursor in self._cursors.values():
            cursor.restart()
        self._pulls = self._make_pulls(accept)
        self._accept = accept

    def wait(self, timeout_s: float) -> Iterator[Fetched]:
        """Yield answers for queues that are still read, for at most *timeout_s*; return early if something changes.

        raises UnavailableError if the service has never answered, or has not answered for a minute
        """
        assert self._pulls is not None
        for fetched in self._pulls.fetched(min(timeout_s, _GLANCE_S)):
            if fetched.queue in self._cursors:
                yield fetched
        if self._pulls.unreachable is not None:
            since, error = self._pulls.unreachable
            is_first = not self._has_answered and not self._pulls.is_patient
            if is_first or time.monotonic() - since > _OUTAGE_S:
                raise error
        self.follow()

    def answer(self, fetched: Fetched, decode: Callable[[Fetched], P]) -> P | None:
        """Return the page of *fetched*, or None if it has no page and a later pull continues.

        raises OffsetError as `reset` decides; TopicNotFoundError for a topic that never answered, or if none of the
        topics exists any more; any other refusal
        """
        assert self._pulls is not None
        cursor = self._cursors[fetched.queue]
        try:
            page = decode(fetched)
        except OffsetError as error:
            offset = _first_again(cursor, error) or self._reset(fetched.queue, error)
            cursor.seek(offset)
            self.decided[fetched.queue] = offset
            return None
        except TopicNotFoundError as error:
            cursor.retry_at = time.monotonic() + MISSING_PAUSE_S
            if self._missing.is_to_raise(fetched.queue.topic, read={queue.topic for queue in self._cursors}):
                raise error
            return None
        except UnavailableError as error:
            self._pulls.failed(error)
            return None
        self._has_answered = True
        if cursor.retry_at:
            cursor.retry_at = 0.0
        self._missing.has_answered(fetched.queue.topic)
        if page.skipped:
            _warn_of_skipped(fetched.queue, page.skipped)
        return page

    def add(self, fetched: Fetched) -> None:
        """Buffer the messages of *fetched*."""
        page = self.answer(fetched, lambda fetched: fetched.page())
        if page is not None:
            if self._store:
                for message in page.messages:
                    message.read_from(self._store)
            self._cursors[fetched.queue].add(
                page.messages, requested_offset=page.requested_offset, next_offset=page.next_offset
            )

    def wake(self) -> None:
        """End a wait. Called from another thread."""
        pulls = self._pulls
        if pulls is not None:
            pulls.wake()

    def close(self) -> None:
        """Close the pulls, and release the queues."""
        if self._pulls is not None:
            self._pulls.close()
            self._pulls = None
        if self._has_started:
            self._assigned.close()


def _first_again(cursor: Cursor, error: OffsetError) -> int | None:
    """Return the offset at which to continue if that skips no message; otherwise None.

    It applies if the topic was deleted and created again, or if retention has passed the minimum that a seek to
    "earliest" found.
    """
    if not isinstance(error, OffsetTooSmallError):
        return None
    first = int(error.facts.get("first_offset") or 0)
    if isinstance(cursor.position, int) and cursor.position < first:
        return first
    if cursor.position == cursor.earliest:
        cursor.earliest = int(error.facts["min_offset"] or 0)
        return cursor.earliest
    return None


def _warn_of_skipped(queue: TopicQueue, skipped: list[SkippedAnswer]) -> None:
    """Log damaged records, which cannot be handed out."""
    _log.warning(
        "queue %d of %s: damaged records were skipped: %s",
        queue.queue_id,
        queue.topic,
        ", ".join(f"{skip['reason']} at offset {skip['queue_offset']}" for skip in skipped),
    )
