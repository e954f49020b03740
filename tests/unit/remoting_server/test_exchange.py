"""Exchange: answers, refusals and one-way requests."""

from __future__ import annotations

import orjson
import pytest

from tests.unit.remoting_server.served import ECHO, run, serving
from tidemark.errors import ForbiddenError, StoreError, TopicNotFoundError
from tidemark.remoting import ResponseCode
from tidemark.remoting.refusal import FACTS, REASON
from tidemark.remoting_server.exchange import Exchange
from tidemark.status import STATUS


def refusing_with(error: StoreError) -> dict[str, object]:
    """Return the parts of the answer to a request that is refused with *error*."""
    found: dict[str, object] = {}

    def refuse(exchange: Exchange) -> None:
        raise error

    async def test() -> None:
        async with serving({1: refuse}) as served:
            answer = await (await served.client()).call(1)
            found.update(code=answer.code, remark=answer.remark, fields=answer.fields)

    run(test)
    return found


def test_a_refusal_has_code_remark_reason_and_facts() -> None:
    found = refusing_with(TopicNotFoundError("topic 't'\n does not exist", topic="t", limit=None, count=3))
    assert found == {
        "code": 17,
        "remark": "topic 't' does not exist",
        "fields": {REASON: "TOPIC_NOT_FOUND", FACTS: '{"topic":"t","count":3}'},
    }


def test_a_refusal_without_facts_has_no_field_for_them() -> None:
    assert refusing_with(ForbiddenError("no"))["fields"] == {REASON: "FORBIDDEN"}


def test_large_facts_and_long_remarks_are_shortened() -> None:
    """A client's own names are parts of them; with 16 MiB of control characters they would not fit into a header."""
    found = refusing_with(ForbiddenError("x" * 5_000, right="\x01" * 3_000_000))
    assert found == {"code": 16, "remark": "x" * 1_000, "fields": {REASON: "FORBIDDEN"}}


@pytest.mark.parametrize("leaf", STATUS, ids=lambda leaf: leaf.__name__)
def test_every_error_has_a_response_code(leaf: type[StoreError]) -> None:
    assert ResponseCode[STATUS[leaf].response_code] is not ResponseCode.SUCCESS


def test_parts_of_a_body_are_sent_one_behind_the_other() -> None:
    async def test() -> None:
        def answer(exchange: Exchange) -> None:
            exchange.answer_parts(19, {"a": "1"}, [b"one", memoryview(b"two"), bytearray(b"three")], remark="r")

        async with serving({1: answer}) as served:
            found = await (await served.client()).call(1)
        assert (found.code, found.fields, found.remark) == (19, {"a": "1"}, "r")
        assert bytes(found.body) == b"onetwothree"

    run(test)


def test_a_one_way_request_is_never_answered() -> None:
    """Whatever the outcome: answered, in parts, refused, failed, unknown. It counts as answered."""

    async def test() -> None:
        def parts(exchange: Exchange) -> None:
            exchange.answer_parts(0, {}, [b"x"])

        def refuse(exchange: Exchange) -> None:
            raise ForbiddenError("no")

        def fail(exchange: Exchange) -> None:
            raise RuntimeError("a bug")

        async with serving({1: parts, 2: refuse, 3: fail}) as served:
            client = await served.client()
            for code in (1, 2, 3, ECHO, 9_999):
                await client.send(code, one_way=True)
            last = await client.call(ECHO, {"n": "1"})
            assert last.fields == {"n": "1"}
            families = {family.name: family for family in served.server.counts.families(1)}
            counted = sum(sample.value for sample in families["tidemark_remoting_requests"].samples)
            assert counted == 6

    run(test)


def test_facts_of_other_types_are_shown_as_texts() -> None:
    found = refusing_with(ForbiddenError("no", right=StoreError("x")))  # type: ignore[arg-type]
    assert isinstance(found["fields"], dict)
    assert orjson.loads(found["fields"][FACTS]) == {"right": "x"}
