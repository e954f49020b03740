"""Requests that neither service offers."""

from __future__ import annotations

import pytest

from tests.unit.remoting_server.served import run, serving
from tidemark.remoting import RequestCode, ResponseCode
from tidemark.remoting.heartbeats import ClientConfig, SubscriptionData, client_config_body
from tidemark.remoting_server.refusals import NO_SQL, refusals, refusing

NOT_SUPPORTED = ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def answer_to(code: int, body: bytes = b"") -> tuple[int, str]:
    """Return code and remark of the answer."""
    found: list[tuple[int, str]] = []

    async def test() -> None:
        async with serving(refusals()) as served:
            answer = await (await served.client()).call(code, body=body)
            found.append((answer.code, answer.remark))

    run(test)
    return found[0]


@pytest.mark.parametrize(
    ("code", "response", "says"),
    [
        (RequestCode.RECALL_MESSAGE, ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden"),
        (RequestCode.END_TRANSACTION, ResponseCode.NO_PERMISSION, "transactions are not supported"),
        (RequestCode.SEND_REPLY_MESSAGE, NOT_SUPPORTED, "request-reply"),
        (RequestCode.SEND_REPLY_MESSAGE_V2, NOT_SUPPORTED, "request-reply"),
        (RequestCode.QUERY_ASSIGNMENT, NOT_SUPPORTED, "POP"),
        (RequestCode.POP_MESSAGE, NOT_SUPPORTED, "POP"),
        (RequestCode.ACK_MESSAGE, NOT_SUPPORTED, "POP"),
        (RequestCode.CHANGE_MESSAGE_INVISIBLETIME, NOT_SUPPORTED, "POP"),
        (RequestCode.NOTIFICATION, NOT_SUPPORTED, "POP"),
        (206, NOT_SUPPORTED, " request type 206 not supported"),
        (-5, NOT_SUPPORTED, " request type -5 not supported"),
    ],
)
def test_each_refusal_has_its_code_and_a_remark_for_users(code: int, response: int, says: str) -> None:
    found, remark = answer_to(code)
    assert found == response
    assert says in remark
    assert "\n" not in remark


@pytest.mark.parametrize(
    ("kind", "expected"), [("TAG", (0, "")), ("SQL92", (ResponseCode.SYSTEM_ERROR, NO_SQL)), ("?", (1, NO_SQL))]
)
def test_a_subscription_is_possible_by_tags_only(kind: str, expected: tuple[int, str]) -> None:
    """Java's consumer checks one by SQL at its start, which then fails with the remark."""
    body = client_config_body(ClientConfig("a", "g", SubscriptionData("t", "x", 1, kind)))
    assert answer_to(RequestCode.CHECK_CLIENT_CONFIG, body) == expected


def test_a_subscription_check_without_a_body_is_refused() -> None:
    code, remark = answer_to(RequestCode.CHECK_CLIENT_CONFIG)
    assert code == ResponseCode.SYSTEM_ERROR
    assert "body" in remark


def test_a_refusing_handler_answers_with_its_code_and_remark() -> None:
    async def test() -> None:
        async with serving({5: refusing(ResponseCode.QUERY_NOT_FOUND, "elsewhere")}) as served:
            answer = await (await served.client()).call(5)
            assert (answer.code, answer.remark, bytes(answer.body)) == (22, "elsewhere", b"")

    run(test)
