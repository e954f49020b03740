"""RepeatedPulls: a consumer repeats its pull of a queue with another offset, and nothing else is parsed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidemark.access.right import Right
from tidemark.remoting.pulling import PULL_REQUEST, PullMessageRequest

from ..pull.pulled import AnswerLimits

_TOPIC, _QUEUE_ID, _OFFSET = map(PULL_REQUEST.name_of, ("topic", "queue_id", "queue_offset"))
_parse_offset = PULL_REQUEST.parsers["queue_offset"]
_MOST_QUEUES = 64  # of one connection
_MOST_DIGITS = 20  # of an offset, with its sign; a longer text is not kept
_MOST_TEXT = 1_024  # characters of a request's fields


class ParsedPull(NamedTuple):
    """A pull request, and all that follows from its fields besides the queue offset.

    asked: its `queue_offset` is the one of the first request.
    """

    asked: PullMessageRequest
    right: Right
    limits: AnswerLimits


class RepeatedPulls:
    """The last pull of each queue on one connection."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, str | None], tuple[dict[str, str | None], ParsedPull]] = {}

    def find(self, fields: Mapping[str, str]) -> tuple[ParsedPull, int] | None:
        """Return the parsed request and the queue offset of *fields*.

        None if there was no such request, or if the offset is illegal.
        """
        known = self._known.get((fields.get(_TOPIC), fields.get(_QUEUE_ID)))
        text = fields.get(_OFFSET)
        if known is None or text is None or len(text) > _MOST_DIGITS:
            return None
        known[0][_OFFSET] = text
        if known[0] != fields:
            return None
        try:
            return known[1], _parse_offset(text)
        except ValueError:
            return None

    def keep(self, fields: Mapping[str, str], parsed: ParsedPull) -> None:
        """Keep the parsed request of *fields*, which must name an existing topic; a very long one is not kept."""
        if sum(map(len, fields)) + sum(map(len, fields.values())) > _MOST_TEXT:
            return
        if len(self._known) >= _MOST_QUEUES:
            self._known.clear()
        self._known[fields[_TOPIC], fields[_QUEUE_ID]] = {**fields}, parsed
