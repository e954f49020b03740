from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from starlette.types import Message

from services.indexer.query.state.unsent_bytes_limit import UnsentBytesLimit
from services.indexer.query.web.chunked_response import SEND_PIECES, Pieces, PiecesResponse
from tidemark.errors import InFlightLimitError

LARGE = 100 << 10


async def _no_request() -> Message:
    raise AssertionError("a response does not read the request")


class Client:
    """Keeps the messages of a response, and calls *on_body* for each with a body."""

    def __init__(self, on_body: Callable[[], object] = lambda: None) -> None:
        self.messages: list[Message] = []
        self._on_body = on_body

    async def send(self, message: Message) -> None:
        self.messages.append(message)
        if message.get("body"):
            self._on_body()

    def take(self, pieces: Pieces, answers: UnsentBytesLimit) -> list[bytes | memoryview]:
        """Take a response of *pieces*; return the bodies of its messages."""
        response = PiecesResponse(pieces, {"X-Fact": "1"}, "text/plain", answers)
        asyncio.run(response({"type": "http"}, _no_request, self.send))
        return [message["body"] for message in self.messages if message.get("body")]


def answers(limit: int = 1 << 30) -> UnsentBytesLimit:
    return UnsentBytesLimit(limit)


@pytest.mark.parametrize(
    "pieces",
    [[], [b"ab", b"", b"c"], [b"a", b"L" * LARGE, b"b", memoryview(b"M" * LARGE)], [b"x" * 1000] * 1000],
    ids=["empty", "small", "mixed", "many"],
)
def test_the_body_is_the_pieces_in_their_order(pieces: Pieces) -> None:
    client = Client()
    expected = b"".join(pieces)
    assert b"".join(client.take(pieces, answers())) == expected
    headers = dict(client.messages[0]["headers"])
    assert (headers[b"content-length"], headers[b"x-fact"]) == (b"%d" % len(expected), b"1")
    assert not client.messages[-1].get("more_body")


def test_a_large_piece_is_sent_without_a_copy() -> None:
    large = memoryview(bytes(LARGE))
    bodies = Client().take([b"head", b"of", large, b"end"], answers())
    assert [body is large for body in bodies] == [False, True, False]
    assert (bodies[0], bodies[2]) == (b"headof", b"end")


def test_a_connection_gets_several_pieces_at_once_without_a_copy() -> None:
    """Tiny pieces are joined, and a large one is sent by itself."""
    pieces: Pieces = [b"tiny", b"er", *(memoryview(bytes([n]) * 50_000) for n in range(7)), b"x", bytes(LARGE), b"end"]
    groups: list[Pieces] = []

    async def send_pieces(group: Pieces) -> None:
        groups.append(group)

    response = PiecesResponse(pieces, {}, "text/plain", answers(), joins_now=False)
    client = Client()
    scope = {"type": "http", "extensions": {SEND_PIECES: send_pieces}}
    asyncio.run(response(scope, _no_request, client.send))
    assert [[len(piece) for piece in group] for group in groups] == [[6] + [50_000] * 5, [50_000, 50_000, 1]]
    assert all(sent is given for sent, given in zip(groups[0][1:], pieces[2:7], strict=True))
    assert [message["body"] for message in client.messages[1:-1]] == [bytes(LARGE), b"end"]


def test_an_answer_of_small_parts_does_not_keep_the_buffer_that_they_are_in() -> None:
    """It may wait for a slow client, and only its own bytes are accounted for."""
    buffer = np.zeros(1 << 20, np.uint8)
    there = weakref.ref(buffer)
    response = PiecesResponse([buffer[:5_000].data, buffer[9_000:15_000].data], {}, "text/plain", answers())
    del buffer
    assert there() is None
    assert len(response._pieces) == 1


def test_small_pieces_are_joined_up_to_a_limit() -> None:
    bodies = Client().take([b"x" * 1000] * 1000, answers())
    assert 1 < len(bodies) < 10


def test_a_large_answer_occupies_room_until_it_is_sent() -> None:
    """A second one of this size finds no room meanwhile."""
    held = answers(LARGE + 1)
    refused: list[InFlightLimitError] = []

    def ask_for_another() -> None:
        try:
            with held.held(LARGE):
                pass
        except InFlightLimitError as error:
            refused.append(error)

    Client(ask_for_another).take([bytes(LARGE)], held)
    assert len(refused) == 1
    with held.held(LARGE):
        pass


def test_an_answer_without_room_is_refused_before_the_first_byte() -> None:
    held = answers(LARGE)
    client = Client()
    with held.held(1), pytest.raises(InFlightLimitError):
        client.take([bytes(LARGE)], held)
    assert client.messages == []


def test_a_disconnected_client_releases_its_room() -> None:
    held = answers(LARGE)

    def go_away() -> None:
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        Client(go_away).take([bytes(LARGE)], held)
    held.require_room()
