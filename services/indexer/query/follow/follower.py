"""Follower: one request that stays open, and gets each message of its queues as it becomes visible."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tidemark.errors import StoreError
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.tag_filter import TagFilter
from tidemark.status import status_of

from ..pull.pull_response import body_room, note_skipped, skipped_json
from ..pull.pulled import AnswerLimits, Pulled
from ..pull.queue_pull import QueuePull
from ..pull.single_pull import Puller
from ..queue_allocation import Queue
from ..state.bell import Bell
from ..state.service_state import ServiceState
from ..state.watermark_watcher import Queues, Ready
from ..web.chunked_response import Pieces
from .encodings import FORMS, FollowFormat
from .page import Page
from .positions import Position, positions_text

if TYPE_CHECKING:
    from ..pull.pull_spans import PullSpans  # imports OpenTelemetry

_PAGE_MESSAGES = 4096


class FollowOptions(NamedTuple):
    """Options of a request. max_messages: the answer ends after this number; None: it does not."""

    body_format: FollowFormat
    encoding: BodyEncoding
    tags: tuple[str, ...]
    max_messages: int | None
    max_s: float
    heartbeat_s: float


class _Cursor:
    """The reads of one queue. sent: offset after the last message in the answer."""

    def __init__(self, state: ServiceState, start: Position, limits: AnswerLimits) -> None:
        self.queue = Queue(start.topic, start.queue_id)
        self.pull = QueuePull(state, start.topic, start.queue_id, start.offset, limits)
        self.puller = Puller(state, self.pull, _never)
        self.is_placed = False  # True after the first read, which makes a number of earliest and latest
        self.sent = 0

    @property
    def position(self) -> Position:
        return Position(*self.queue, str(self.sent))


class Follower:
    """Yields the messages of *starts* from their offsets on, as pieces of an answer, until a limit or a fault.

    Args:
        require_right: raises if the caller may not read; called before each round of reads.
        spans: None if traces are off.
    """

    def __init__(
        self,
        state: ServiceState,
        starts: Sequence[Position],
        options: FollowOptions,
        require_right: Callable[[], None],
        spans: PullSpans | None,
    ) -> None:
        self._state = state
        self._options = options
        self._require_right = require_right
        self._spans = spans
        self._form = FORMS[options.body_format]
        self._limits = AnswerLimits(
            _PAGE_MESSAGES,
            state.settings.query_default_bytes // len(starts),
            0,
            TagFilter.parse(list(options.tags)),
            whole_records=options.body_format is FollowFormat.RECORDS,
            as_columns=options.body_format is FollowFormat.ARROW,
        )
        self._cursors = {Queue(start.topic, start.queue_id): _Cursor(state, start, self._limits) for start in starts}
        self._first: list[tuple[_Cursor, Page]] = []
        self._left = options.max_messages
        self._bell = Bell(self._cursors)
        self._is_gone = False
        self._held_bytes = 0  # read and not sent yet, as the service's limit counts them
        self._deadline = time.monotonic() + options.max_s
        self._heartbeat_at = 0.0

    async def open(self) -> None:
        """Read each queue once, so that a fault is reported before the answer begins.

        Raises:
            StoreError: one of the queues cannot be read from its offset.
        """
        try:
            for cursor in self._cursors.values():
                page = await self._read(cursor)
                cursor.sent = page.begin
                self._first.append((cursor, page))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Stop counting the bytes that were read: they are sent or dropped."""
        self._state.answers.give(self._held_bytes)
        self._held_bytes = 0

    def leave(self) -> None:
        """End the follower: its client is gone."""
        self._is_gone = True
        self._bell.ring()

    async def pieces(self) -> AsyncGenerator[Pieces]:
        """Yield the answer. Call `open` before."""
        yield [self._form.begin()]
        with self._state.queue_ends.ringing(self._bell, list(self._cursors)):
            try:
                while self._first:
                    yield self._sent(*self._first.pop(0))
                self.release()
                self._postpone_heartbeat()
                async for pieces in self._rounds():
                    yield pieces
                yield [self._event("end", {"reason": self._end_reason()})]
            except StoreError as error:
                yield [
                    self._event("problem", {**error.facts, "reason": status_of(error).reason, "detail": error.message})
                ]
        yield [self._form.end()]

    async def _rounds(self) -> AsyncGenerator[Pieces]:
        """Read the queues that have grown, and wait for the next ones, until the end."""
        unread: set[Queue] = set()
        while self._end_reason() is None:
            self._require_right()
            due, unread = self._bell.take() | unread, set()
            for queue, cursor in self._cursors.items():
                if queue not in due or self._end_reason() is not None:
                    continue
                pieces, is_last = await self._read_and_encode(cursor)
                if not is_last:
                    unread.add(queue)
                if pieces:
                    yield pieces  # continues when they are sent
                    self.release()
                    self._postpone_heartbeat()
            if not unread and self._end_reason() is None:
                await self._bell.wait(min(self._deadline, self._heartbeat_at) - time.monotonic())
            if time.monotonic() >= self._heartbeat_at:
                yield [self._form.heartbeat(self._positions())]
                self._postpone_heartbeat()

    def _end_reason(self) -> str | None:
        if self._is_gone:
            return "GONE"
        if self._state.watcher.is_stopped:
            return "STOPPING"
        if self._left == 0:
            return "MAX_MESSAGES"
        return "MAX_SECONDS" if time.monotonic() >= self._deadline else None

    def _postpone_heartbeat(self) -> None:
        self._heartbeat_at = time.monotonic() + self._options.heartbeat_s

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read_and_encode(self, cursor: _Cursor) -> tuple[Pieces, bool]:
        """Return the pieces of the next messages of a queue, and whether it has no further ones."""
        page = await self._read(cursor)
        return self._sent(cursor, page), page.is_last

    async def _read(self, cursor: _Cursor) -> Page:
        """Read the next messages of a queue, and count their bytes.

        Raises:
            InFlightLimitError: too many bytes wait to be sent.
        """
        pull = cursor.pull
        most = _PAGE_MESSAGES if self._left is None else min(self._left, _PAGE_MESSAGES)
        pull.limits = self._limits._replace(max_messages=most)

        def make(pulled: Pulled) -> Page:
            return self._page(cursor, pulled)

        if self._spans is not None:
            page = await cursor.puller.run(self._spans.around(make, *cursor.queue))
        elif not cursor.is_placed:
            page = await cursor.puller.run(make)
        else:
            options = self._options
            key = (cursor.queue, pull.cursor, most, options.tags, options.body_format, options.encoding)
            page = await self._state.follow_pages.get(key, lambda: cursor.puller.run(make))
        cursor.is_placed = True
        pull.cursor = page.next_offset
        self._state.answers.take(page.size)
        self._held_bytes += page.size
        if self._left is not None:
            self._left = max(0, self._left - page.message_count)
        return page

    def _page(self, cursor: _Cursor, pulled: Pulled) -> Page:
        """Encode the messages of a read. May run on a reading thread.

        Raises:
            AnswerFullError: the decompressed bodies exceed query_max_body_bytes, and fewer messages may fit.
        """
        result, queue = pulled.result, cursor.queue
        room = body_room(self._state, pulled)
        rows = [row for part in result.parts for row in self._form.rows(queue, part, self._options.encoding, room)]
        note_skipped(self._state, queue, result.skipped)
        return Page(
            rows,
            [offset for part in result.parts for offset in part.messages["queue_offset"].tolist()]
            if self._options.body_format is FollowFormat.EVENTS
            else (),
            result.message_count,
            cursor.pull.cursor,
            result.next_offset,
            result.next_offset >= result.bounds.units_end,
            result.skipped,
        )

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sent(self, cursor: _Cursor, page: Page) -> Pieces:
        """Return the pieces of *page*, which counts as sent."""
        cursor.sent = page.next_offset
        if not page.message_count and not page.skipped:
            return []
        before, after = self._around(cursor) if self._options.body_format is FollowFormat.EVENTS else ("", "")
        pieces = list(self._form.page(page, before, after))
        if page.skipped:
            pieces.append(
                self._event("skipped", {**cursor.queue._asdict(), "skipped": skipped_json(list(page.skipped))})
            )
        metrics = self._state.metrics
        metrics.given.add(cursor.queue.topic, page.message_count, page.size)
        metrics.body_bytes(self._options.body_format.name.lower()).inc(page.size)
        return pieces

    def _event(self, name: str, content: dict[str, object]) -> bytes:
        return self._form.event(name, content, self._positions())

    def _positions(self) -> str:
        return positions_text(cursor.position for cursor in self._cursors.values())

    def _around(self, cursor: _Cursor) -> tuple[str, str]:
        """Return the positions as text before and after the offset of one queue."""
        texts = [str(other.position) for other in self._cursors.values()]
        at = list(self._cursors).index(cursor.queue)
        before = ",".join([*texts[:at], "{}:{}:".format(*cursor.queue)])
        return before, "".join(f",{text}" for text in texts[at + 1 :])


async def _never(ready: Ready, deadline: float, looks: int, queues: Queues) -> bool:
    """Wait for nothing: a follower waits for its bell."""
    return False
