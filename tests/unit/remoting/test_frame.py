"""Frames as values."""

from __future__ import annotations

import pytest

from tidemark.remoting import Frame, Language, Serialization, answer_to, request


def test_request_has_flag_zero_and_answer_has_bit_zero() -> None:
    asked = request(310, {"b": "t"}, b"body", opaque=7)
    assert (asked.flag, asked.is_answer, asked.is_one_way) == (0, False, False)
    answered = answer_to(asked, 17, "topic t does not exist", {"queueId": "0"}, b"x")
    assert (answered.flag, answered.is_answer, answered.is_one_way) == (1, True, False)
    assert (answered.code, answered.opaque, answered.remark) == (17, 7, "topic t does not exist")
    assert (answered.fields, answered.body) == ({"queueId": "0"}, b"x")


def test_one_way_request_has_bit_one_and_no_answer() -> None:
    asked = request(15, opaque=1, one_way=True)
    assert (asked.flag, asked.is_one_way) == (2, True)
    with pytest.raises(ValueError, match="request 15 is one way"):
        answer_to(asked, 0)


def test_answer_is_json_with_version_479_for_a_binary_request() -> None:
    asked = Frame(105, 0, 5, Language.GO, 317, serialization=Serialization.ROCKETMQ)
    answered = answer_to(asked, 0)
    assert (answered.serialization, answered.version) == (Serialization.JSON, 479)


def test_repr_never_shows_the_value_of_a_field() -> None:
    shown = repr(request(10, {"AccessKey": "AK1", "Signature": "S1", "SecurityToken": "T1"}, b"B1", opaque=1))
    assert "['AccessKey', 'SecurityToken', 'Signature']" in shown
    assert not any(secret in shown for secret in ("AK1", "S1", "T1", "B1"))
