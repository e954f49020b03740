"""Prepared heads have the bytes of `framing`, and an answer that is written differently is left to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidemark.remoting.codes import Language, Serialization
from tidemark.remoting.frame import ANSWER, ONE_WAY, Frame, answer_to, request
from tidemark.remoting.framing import encode
from tidemark.remoting.prepared_head import RequestHead, encode_success, success_body


@pytest.mark.parametrize("opaque", [0, 1, 10, 0x7FFFFFFF])
@pytest.mark.parametrize(
    "fields", [{}, {"token": "a"}, {"opaque": "0", "text": '"opaque":0', "quoted": '\\"opaque":0,"'}]
)
@pytest.mark.parametrize("body", [b"", b"body", bytes(100_000)])
def test_a_prepared_request_has_the_bytes_of_an_encoded_one(opaque: int, fields: dict[str, str], body: bytes) -> None:
    prepared = RequestHead(770_001, fields).encode(opaque, len(body)) + body
    assert prepared == encode(request(770_001, fields, body, opaque=opaque))


def answer(opaque: int = 7, body: bytes = b"result") -> Frame:
    return answer_to(request(1, opaque=opaque), 0, body=body)


@pytest.mark.parametrize("opaque", [0, 1, 10, 0x7FFFFFFF])
@pytest.mark.parametrize("body", [b"", b"result", bytes(100_000)])
def test_the_body_of_a_successful_answer_is_found(opaque: int, body: bytes) -> None:
    assert success_body(encode(answer(opaque, body)), opaque) == body


@pytest.mark.parametrize(
    "changes",
    [
        {"opaque": 70},
        {"opaque": 17},
        {"code": 1},
        {"flag": ANSWER | ONE_WAY},
        {"remark": "late"},
        {"fields": {"a": "b"}},
        {"language": Language.GO},
        {"version": 1},
        {"serialization": Serialization.ROCKETMQ},
    ],
)
def test_an_answer_with_another_header_is_not_recognised(changes: dict[str, object]) -> None:
    assert success_body(encode(replace(answer(), **changes)), 7) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 3, 7, 8, 40, -1])
def test_a_part_of_an_answer_is_not_recognised(size: int) -> None:
    assert success_body(encode(answer())[:size], 7) is None


def test_an_answer_with_further_bytes_is_not_recognised() -> None:
    data = encode(answer())
    assert success_body(data + b"\0", 7) is None
    assert success_body(data + data, 7) is None


def test_an_answer_whose_mark_names_another_header_size_is_not_recognised() -> None:
    data = bytearray(encode(answer()))
    data[7] += 1
    assert success_body(bytes(data), 7) is None


@pytest.mark.parametrize("opaque", [0, 7, 0x7FFFFFFF, -0x80000000])
def test_success_is_the_encoded_answer_without_remark_and_fields(opaque: int) -> None:
    body = bytes(range(256))
    assert encode_success(opaque, body) == encode(answer_to(request(10, opaque=opaque), 0, body=body))
