"""Numbers of the protocol."""

from __future__ import annotations

import pytest

from tidemark.remoting import codes
from tidemark.remoting.codes import Language, RequestCode, ResponseCode, Serialization


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0, "JAVA"),
        (1, "CPP"),
        (2, "DOTNET"),
        (3, "PYTHON"),
        (4, "DELPHI"),
        (5, "ERLANG"),
        (6, "RUBY"),
        (7, "OTHER"),
        (8, "HTTP"),
        (9, "GO"),
        (10, "PHP"),
        (11, "OMS"),
        (12, "RUST"),
        (13, "NODE_JS"),
    ],
)
def test_language_has_its_number_and_name(number: int, name: str) -> None:
    assert Language[name] == number
    assert codes.LANGUAGE_BY_NAME[name] is codes.LANGUAGE_BY_NUMBER[number] is Language(number)
    assert codes.LANGUAGE_NAMES[number] == name


def test_enums_have_one_name_for_each_number() -> None:
    for kind in (RequestCode, ResponseCode, Language, Serialization):
        assert len(kind) == len(kind.__members__)


def test_codes_have_the_numbers_of_the_captured_exchanges() -> None:
    assert [RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE] == [10, 310, 320]
    assert [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE] == [11, 361]
    assert [RequestCode.HEART_BEAT, RequestCode.GET_ROUTEINFO_BY_TOPIC] == [34, 105]
    assert [ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST, ResponseCode.PULL_OFFSET_MOVED] == [0, 17, 21]
    assert [ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE] == [10, 11]
    assert [ResponseCode.FLUSH_SLAVE_TIMEOUT, ResponseCode.MESSAGE_ILLEGAL] == [12, 13]
