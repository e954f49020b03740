"""Dispatcher: callers, unknown codes, and errors of handlers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.access_files import AccessFolder, Issuer
from tests.unit.remoting_server.served import ECHO, run, serving
from tidemark.access.access_file import AccessFile
from tidemark.access.guard import Guard
from tidemark.access.identity import MAX_TOKEN_BYTES
from tidemark.access.rate_limits import RateLimits
from tidemark.access.right import Action, on_topic
from tidemark.errors import StoreClosedError
from tidemark.remoting_server.exchange import Exchange
from tidemark.settings.reloaded_files import ReloadedFiles

NO_PERMISSION = 16


def guard_of(files: AccessFolder, rates: RateLimits | None = None) -> Guard:
    access = ReloadedFiles(AccessFile(files.path), every_ms=10_000, on_reload=lambda _: None)
    return Guard(access, rates or RateLimits(), None)


def test_without_a_token_every_code_is_refused_even_an_unknown_one(tmp_path: Path) -> None:
    files = AccessFolder(tmp_path)
    token = files.principal("one")

    async def test() -> None:
        async with serving(guard=guard_of(files)) as served:
            client = await served.client()
            for code in (ECHO, 105, 9_999):
                for shown in ({}, {"SecurityToken": ""}, {"SecurityToken": "x"}, {"AccessKey": token}):
                    answer = await client.call(code, shown)
                    assert (answer.code, answer.fields["tidemarkReason"]) == (NO_PERMISSION, "UNAUTHENTICATED")
                    assert token not in str(answer.fields) + answer.remark
            assert (await client.call(ECHO, {"SecurityToken": token})).code == 0
            assert (await client.call(9_999, {"SecurityToken": token})).code == 3
            assert (await client.call(ECHO)).code == NO_PERMISSION, "a token is not bound to the connection"

    run(test)


def test_the_caller_has_the_rights_of_its_token(tmp_path: Path) -> None:
    files = AccessFolder(tmp_path)
    tokens = [files.principal("one"), files.principal("two")]
    files.rule("one", ["Pub"], "Topic:t")

    def require(exchange: Exchange) -> None:
        exchange.caller.require(on_topic("t", Action.PUB))
        exchange.answer(0, {"name": exchange.caller.name})

    async def test() -> None:
        async with serving({1: require}, guard=guard_of(files)) as served:
            client = await served.client()
            for _ in range(3):
                assert (await client.call(1, {"SecurityToken": tokens[0]})).fields == {"name": "one"}
                assert (await client.call(1, {"SecurityToken": tokens[1]})).code == NO_PERMISSION

    run(test)


def test_a_token_that_expires_is_refused_from_then_on(tmp_path: Path) -> None:
    files, issuer = AccessFolder(tmp_path), Issuer()
    files.jwt(issuer, leeway_s=0)

    async def test() -> None:
        async with serving(guard=guard_of(files)) as served:
            client = await served.client()
            expires = time.time() + 5
            shown = {"SecurityToken": issuer.token(exp=expires)}
            assert (await client.call(ECHO, shown)).code == 0
            time.sleep(expires + 0.1 - time.time())  # noqa: ASYNC251 - the clock of the token is the real one
            assert (await client.call(ECHO, shown)).code == NO_PERMISSION

    run(test)


def test_requests_above_the_rate_are_answered_flow_control(tmp_path: Path) -> None:
    files = AccessFolder(tmp_path)
    token = files.principal("one", max_requests_per_s=2)

    async def test() -> None:
        async with serving(guard=guard_of(files)) as served:
            client = await served.client()
            codes = [(await client.call(ECHO, {"SecurityToken": token})).code for _ in range(4)]
            assert codes[:2] == [0, 0]
            assert codes[-1] == 215

    run(test)


@pytest.mark.parametrize("has_access", [True, False])
def test_callers_of_hostile_tokens_take_no_memory(tmp_path: Path, has_access: bool) -> None:
    """Neither refused tokens nor tokens that are longer than any real one are kept."""
    files = AccessFolder(tmp_path)
    good = files.principal("one")

    async def test() -> None:
        async with serving(guard=guard_of(files) if has_access else None) as served:
            client = await served.client()
            await client.call(ECHO, {"SecurityToken": good})
            (connection,) = served.server._connections
            for number in range(100):
                await client.call(number + 10_000, {"SecurityToken": "x" * (MAX_TOKEN_BYTES + 1 + number)})
            assert list(connection.callers) == [(good, ECHO)]
            for number in range(200):
                await client.call(number + 10_000, {"SecurityToken": good})
            assert len(connection.callers) <= 64

    run(test)


def test_a_bug_is_answered_logged_with_an_id_and_ends_nothing_else() -> None:
    """At once, or in the rest of the work."""

    def at_once(exchange: Exchange) -> None:
        raise KeyError("secret")

    async def later(exchange: Exchange) -> None:
        raise ZeroDivisionError("secret")

    async def test() -> None:
        async with serving({1: at_once, 2: later}) as served:
            client = await served.client()
            for code in (1, 2):
                with capture_logs() as events:
                    answer = await client.call(code)
                assert answer.code == 1
                assert answer.remark.startswith("an internal error, logged with request_id ")
                assert "secret" not in answer.remark
                assert [(event["event"], event["code"]) for event in events] == [("request_failed", code)]
            assert (await client.call(ECHO)).code == 0
            (connection,) = served.server._connections
            assert connection.is_idle

    run(test)


def test_an_error_of_the_store_is_the_answer() -> None:
    def at_once(exchange: Exchange) -> None:
        raise StoreClosedError("stopping")

    async def later(exchange: Exchange) -> None:
        raise StoreClosedError("stopping")

    async def test() -> None:
        handlers: dict[int, Any] = {1: at_once, 2: later}
        async with serving(handlers) as served:
            client = await served.client()
            for code in handlers:
                with capture_logs() as events:
                    answer = await client.call(code)
                assert (answer.code, answer.remark, events) == (14, "stopping", [])

    run(test)
