"""Results of a lookup of many keys or offsets, until the answer is full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidemark.read.lookup.key_lookup import KeyQuery, find_by_key
from tidemark.read.lookup.offset_lookup import Missing, Place, find_places
from tidemark.read.messages.body import AnswerFullError, BodyRoom
from tidemark.read.messages.message_rows import message_rows
from tidemark.read.watermark import Watermark
from tidemark.status import STATUS

from ..pull.pull_response import skipped_json
from ..schema.request_bodies import LookupBody
from ..schema.search_cursor import encode_cursor, search_name
from ..state.service_state import ServiceState
from .lookup import found_rows

Result = dict[str, Any]
_OFFSETS_AT_ONCE = 256  # read in the order of the log; results of fewer are discarded when the answer is full


class Lookup:
    """One request at one watermark.

    The bodies of all results are limited by query_max_body_bytes and their messages by query_max_messages, except that
    the first result is never empty for that reason. limit: most messages of one result
    """

    def __init__(self, state: ServiceState, watermark: Watermark, topic: str, asked: LookupBody) -> None:
        settings = state.settings
        self.limit = 1
        if asked.offsets is None:
            self.limit = min(asked.limit or settings.query_default_limit, settings.query_max_limit)
        self._state = state
        self._watermark = watermark
        self._topic = topic
        self._asked = asked
        self._left_messages = settings.query_max_messages

    def results(self) -> list[Result]:
        """Return the results of the first keys or offsets: of all, if they fit into one answer."""
        if self._asked.offsets is not None:
            return self._of_offsets([(place.queue_id, place.offset) for place in self._asked.offsets])
        return self._of_keys(self._asked.keys or self._asked.unique_keys or [])

    def _room(self, *, keep_rest_stored: bool = False) -> BodyRoom:
        return BodyRoom(self._state.settings.query_max_body_bytes, keep_rest_stored=keep_rest_stored)

    # -- keys -----------------------------------------------------------------------------------------------------

    def _of_keys(self, keys: Sequence[str]) -> list[Result]:
        results: list[Result] = []
        room = self._room()
        for key in keys:
            if self._left_messages <= 0:
                break
            try:
                results.append(self._key(key, self.limit, room))
            except AnswerFullError:
                return results or [self._some_of_key(key)]
        return results

    def _some_of_key(self, key: str) -> Result:
        """Return a key's result with fewer messages, because the bodies of all do not fit into an answer."""
        limit = self.limit
        while True:
            limit = max(1, limit // 2)
            try:
                return self._key(key, limit, self._room(keep_rest_stored=limit == 1))
            except AnswerFullError:
                continue

    def _key(self, key: str, limit: int, room: BodyRoom) -> Result:
        asked = self._asked
        is_unique = asked.keys is None
        query = KeyQuery(
            self._topic, key, unique=is_unique, from_ms=asked.from_ms, to_ms=asked.to_ms, limit=limit
        )  # fmt: skip
        found = find_by_key(self._state.store, self._state.index, self._watermark, query)
        messages = found_rows(found.parts, asked.body_encoding, room)
        self._left_messages -= len(messages)
        cursor = None
        if found.after is not None:
            name = search_name(
                self._topic,
                None if is_unique else key,
                key if is_unique else None,
                from_ms=asked.from_ms,
                to_ms=asked.to_ms,
            )
            cursor = encode_cursor(name, found.after)
        return _result(messages, next_cursor=cursor, skipped=skipped_json(found.skipped))

    # -- offsets --------------------------------------------------------------------------------------------------

    def _of_offsets(self, places: Sequence[Place]) -> list[Result]:
        places = places[: self._left_messages]
        results: list[Result] = []
        count, room = _OFFSETS_AT_ONCE, self._room()
        while len(results) < len(places):
            piece = _until_repeated(places[len(results) : len(results) + count])
            try:
                results += self._offsets(piece, room)
            except AnswerFullError:
                if results:
                    break
                if count == 1:
                    return self._offsets(piece, self._room(keep_rest_stored=True))
                count, room = count // 2, self._room()
        return results

    def _offsets(self, places: Sequence[Place], room: BodyRoom) -> list[Result]:
        found: dict[Place, Result] = {}
        for one in find_places(self._state.store, self._watermark, self._topic, places):
            if isinstance(one, Missing):
                skipped = [] if one.skipped is None else skipped_json([one.skipped])
                found[one.place] = _result([], reason=STATUS[one.error].reason, skipped=skipped)
                continue
            room.take(sum(one.part.messages["body_length"].tolist()))
            for row in message_rows(one.part, self._asked.body_encoding, room=room):
                found[one.queue_id, row["queue_offset"]] = _result([{"queue_id": one.queue_id, **row}])
        return [found[place] for place in places]


def _until_repeated(places: Sequence[Place]) -> list[Place]:
    """Return *places* up to the first that is named again, so that a message counts as often as it is returned."""
    piece: dict[Place, None] = {}
    for place in places:
        if place in piece:
            break
        piece[place] = None
    return list(piece)


def _result(
    messages: list[dict[str, Any]],
    *,
    reason: str | None = None,
    next_cursor: str | None = None,
    skipped: Sequence[dict[str, Any]] = (),
) -> Result:
    return {"reason": reason, "next_cursor": next_cursor, "skipped": skipped, "messages": messages}
