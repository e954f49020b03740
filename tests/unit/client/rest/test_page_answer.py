from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.unit.client.received_messages import ORDERS, page_json
from tidemark.client.received_message import JSON, TopicQueue
from tidemark.client.rest.connections import Answer
from tidemark.client.rest.page import RECORDS
from tidemark.client.rest.page_answer import HttpFetched, JsonFetched, fetched_of
from tidemark.errors import OffsetTooSmallError, QueryUnreachableError

OTHER = TopicQueue("orders", 1)
REFUSED = {"status": 416, "reason": "OFFSET_TOO_SMALL", "min_offset": 7}


def answer(value: Any, status: int = 200) -> Answer:
    return Answer(status, {}, memoryview(orjson.dumps(value)))


def test_an_answer_of_one_queue_is_its_page() -> None:
    page = HttpFetched(ORDERS, answer(page_json(3, [3, 4], end=9))).page()
    assert (page.queue, [message.queue_offset for message in page.messages], page.next_offset) == (ORDERS, [3, 4], 5)


def test_a_refusal_of_one_queue_is_raised_by_each_form() -> None:
    fetched = HttpFetched(ORDERS, answer(REFUSED, 416))
    for read in (fetched.content, fetched.page, fetched.table):
        with pytest.raises(OffsetTooSmallError) as raised:
            read()
        assert raised.value.facts == {"min_offset": 7}


def test_a_document_of_many_queues_has_a_page_or_a_refusal_for_each() -> None:
    found = [{**ORDERS._asdict(), **page_json(0, [0], end=1)}, {**OTHER._asdict(), **REFUSED}]
    first, second = fetched_of(answer({"answers": found}), JSON)
    assert (first.queue, len(first.page().messages), second.queue) == (ORDERS, 1, OTHER)
    with pytest.raises(OffsetTooSmallError):
        second.page()


def test_a_204_answer_has_no_pages() -> None:
    """204: nothing came in the time of a long poll."""
    assert list(fetched_of(Answer(204, {}, memoryview(b"")), JSON)) == []


def test_a_json_answer_has_no_table() -> None:
    with pytest.raises(TypeError, match="no table"):
        JsonFetched(ORDERS, dict(page_json(0, [], end=0))).table()


def test_a_body_that_is_not_multipart_counts_as_unreachable() -> None:
    with pytest.raises(QueryUnreachableError):
        list(fetched_of(Answer(200, {}, memoryview(b"no parts at all")), RECORDS))
