from __future__ import annotations

import asyncio

import httpx
from starlette.types import Message, Receive, Scope, Send

from services.indexer.query.web.request_id_middleware import RequestIdMiddleware
from tidemark.tracing.request_id import current_request_id


async def answer_with_id(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request with its id."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
    await send({"type": "http.response.body", "body": str(current_request_id()).encode()})


def ask(*ids: str | None) -> list[httpx.Response]:
    """Return the answers to concurrent requests with these ids."""

    async def ask_all() -> list[httpx.Response]:
        transport = httpx.ASGITransport(RequestIdMiddleware(answer_with_id))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            headers = [{} if one is None else {"X-Request-Id": one} for one in ids]
            return await asyncio.gather(*(client.get("/", headers=one) for one in headers))

    return asyncio.run(ask_all())


def test_the_id_of_the_caller_is_kept_and_returned() -> None:
    (answer,) = ask("order-17")
    assert (answer.text, answer.headers["X-Request-Id"]) == ("order-17", "order-17")
    assert answer.headers["X-Own"] == "1", "headers of the answer stay"


def test_a_request_without_an_id_gets_a_new_one() -> None:
    answers = ask(None, None)
    assert all(answer.text == answer.headers["X-Request-Id"] for answer in answers)
    assert len({answer.text for answer in answers}) == 2


def test_a_request_id_that_could_forge_a_log_line_is_replaced() -> None:
    forged = "a b\tc"
    (answer,) = ask(forged)
    assert answer.text == answer.headers["X-Request-Id"] != forged


def test_concurrent_requests_keep_their_own_ids() -> None:
    ids = [f"id-{number}" for number in range(20)]
    assert [answer.text for answer in ask(*ids)] == ids


def test_events_other_than_requests_pass_unchanged() -> None:
    seen: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "lifespan.startup.complete"})

    async def keep(message: Message) -> None:
        seen.append(message)

    async def nothing() -> Message:
        raise AssertionError("not read")

    asyncio.run(RequestIdMiddleware(app)({"type": "lifespan"}, nothing, keep))
    assert seen == [{"type": "lifespan.startup.complete"}]
