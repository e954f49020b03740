"""Pages of many queues, each from an offset to its visible end: 256 queues per request, two requests in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.connections import Connections, SentRequest
from tidemark.client.rest.multipart_answer import Part, parts_of
from tidemark.client.rest.page import following_offset
from tidemark.client.rest.problems import require_success

PULL_PATH = "/v1/pull"
_QUEUES_A_PULL = 256
_UNDER_WAY = 2
_SPARE = 4  # after a full answer, ask for a quarter more queues than it took


class From(NamedTuple):
    """A queue and the offset to pull from."""

    queue: TopicQueue
    offset: int | str


def ask_for_many(
    connections: Connections,
    places: Iterable[From],
    accept: str,
    parameters: Mapping[str, Any],
    *,
    is_repeatable: bool = True,
) -> SentRequest:
    """Send one request for all *places*. parameters: None is left out. is_repeatable: as for `Connections.ask`."""
    given = {name: value for name, value in parameters.items() if value is not None}
    for name in ("tag", "columns"):
        if isinstance(given.get(name), str):
            given[name] = [given[name]]
    queues = [{"topic": queue.topic, "queue_id": queue.queue_id, "offset": offset} for queue, offset in places]
    return connections.send(
        "POST", PULL_PATH, orjson.dumps({**given, "queues": queues}), accept, is_repeatable=is_repeatable
    )


def many_pages(
    connections: Connections,
    offsets: Mapping[tuple[str, int], int | str],
    accept: str,
    parameters: Mapping[str, Any],
) -> Iterator[Part]:
    """Yield the pages of the queues in turn; raise the StoreError of a refused queue. accept: not JSON."""
    left = deque(From(TopicQueue(*queue), offset) for queue, offset in offsets.items())
    under_way: deque[tuple[SentRequest, list[From]]] = deque()
    queues_a_pull = _QUEUES_A_PULL

    def ask() -> None:
        while left and len(under_way) < _UNDER_WAY:
            each = [left.popleft() for _ in range(min(queues_a_pull, len(left)))]
            under_way.append((ask_for_many(connections, each, accept, parameters), each))

    try:
        ask()
        while under_way:
            asked, each = under_way.popleft()
            answer = require_success(asked.answer())
            looked_at = int(answer.headers["Tidemark-Looked-At"])
            left.extendleft(reversed(each[looked_at:]))
            is_full = looked_at < len(each)  # then the service has parsed the other queues in vain
            queues_a_pull = min(_QUEUES_A_PULL, looked_at + looked_at // _SPARE + 1) if is_full else _QUEUES_A_PULL
            parts = list(parts_of(answer))
            for part in parts:
                following = following_offset(part.answer.headers, at_end=False)
                if following is not None:
                    left.append(From(part.queue, following))
            ask()  # the service prepares the next pages while the caller uses these
            for part in parts:
                require_success(part.answer)
                yield part
    finally:
        for asked, _ in under_way:
            asked.close()
