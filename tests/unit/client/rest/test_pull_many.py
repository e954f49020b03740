from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest

from tests.fixed_ports import fixed_port
from tests.unit.client.received_messages import ORDERS
from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.connections import Answer, Connections, SentRequest
from tidemark.client.rest.page import RECORDS
from tidemark.client.rest.pull_many import From, ask_for_many, many_pages
from tidemark.errors import TopicNotFoundError

PAGE = 3  # messages of one queue an answer
MANY = {(ORDERS.topic, number): 0 for number in range(300)}


class Sent:
    """A request that is answered."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.is_closed = False

    def answer(self) -> Answer:
        return self._answer

    def close(self) -> None:
        self.is_closed = True


class Service(Connections):
    """Queues of *ends* messages; an answer is about the first *looked_at* queues of its request."""

    def __init__(self, ends: dict[tuple[str, int], int], *, looked_at: int = 1000) -> None:
        super().__init__(f"http://127.0.0.1:{fixed_port()}", timeout_s=1.0)
        self.ends = ends
        self.looked_at = looked_at
        self.bodies: list[dict[str, object]] = []
        self.sent: list[Sent] = []

    def send(  # type: ignore[override]
        self, method: str, path: str, body: bytes | None, accept: str, *, is_repeatable: bool | None = None
    ) -> Sent:
        assert (method, path) == ("POST", "/v1/pull")
        request = orjson.loads(body or b"")
        self.bodies.append(request)
        queues = request["queues"][: self.looked_at]
        content = b"".join(self._part(one["topic"], one["queue_id"], one["offset"]) for one in queues)
        headers = {"Tidemark-Looked-At": str(len(queues))}
        self.sent.append(Sent(Answer(200, headers, memoryview(content + b"\r\n--edge--\r\n"))))
        return self.sent[-1]

    def _part(self, topic: str, queue_id: int, offset: int) -> bytes:
        end = self.ends.get((topic, queue_id))
        if end is None:
            content, kind = b'{"status": 404, "reason": "TOPIC_NOT_FOUND"}', "application/problem+json"
            facts = {}
        else:
            content, kind = b"x", RECORDS
            facts = {"Requested-Offset": offset, "Next-Offset": min(offset + PAGE, end), "Max-Offset": end}
        lines = ["\r\n--edge", f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
        lines += [f"Tidemark-Topic: {topic}", f"Tidemark-Queue-Id: {queue_id}"]
        lines += [f"Tidemark-{name}: {value}" for name, value in facts.items()]
        return "\r\n".join([*lines, "", ""]).encode() + content


def pages(service: Service, offsets: dict[tuple[str, int], int | str]) -> Iterator[tuple[int, int]]:
    """Yield queue id and offset of each page."""
    for part in many_pages(service, offsets, RECORDS, {}):
        yield part.queue.queue_id, int(part.answer.headers["Tidemark-Requested-Offset"])


def test_each_queue_is_read_to_its_end_in_the_order_of_its_offsets() -> None:
    service = Service({("orders", 0): 7, ("orders", 1): 2})
    found = list(pages(service, {("orders", 0): 0, ("orders", 1): 0}))
    assert [offset for number, offset in found if number == 0] == [0, 3, 6]
    assert [offset for number, offset in found if number == 1] == [0]


def test_hundreds_of_queues_share_few_requests() -> None:
    service = Service(dict.fromkeys(MANY, 1))
    assert sorted(pages(service, {**MANY})) == [(number, 0) for number in range(300)]
    assert len(service.bodies) == 2


def test_queues_missing_from_an_answer_are_requested_again() -> None:
    service = Service(dict.fromkeys(MANY, 1), looked_at=100)
    assert sorted(pages(service, {**MANY})) == [(number, 0) for number in range(300)]


def test_after_a_full_answer_the_next_requests_have_a_quarter_more_queues_than_it() -> None:
    """The service would parse the other queues in vain."""
    service = Service(dict.fromkeys(MANY, 1), looked_at=40)
    assert len(list(pages(service, {**MANY}))) == 300
    sizes = [len(body["queues"]) for body in service.bodies]  # type: ignore[arg-type]
    assert sizes[:2] == [256, 44]
    assert set(sizes[2:-3]) == {51}


def test_after_an_answer_about_all_queues_a_request_has_as_many_as_at_first() -> None:
    service = Service(dict.fromkeys(MANY, 7), looked_at=40)
    found = pages(service, {**MANY})
    next(found)
    service.looked_at = 300
    assert len(list(found)) == 899
    sizes = [len(body["queues"]) for body in service.bodies]  # type: ignore[arg-type]
    assert 51 in sizes
    assert max(sizes[sizes.index(51) :]) > 200


def test_a_refused_queue_is_raised_and_the_other_request_is_closed() -> None:
    service = Service({})
    with pytest.raises(TopicNotFoundError):
        list(pages(service, {**MANY}))
    assert [sent.is_closed for sent in service.sent] == [False, True]


def test_a_request_leaves_out_parameters_without_a_value_and_lists_a_single_tag() -> None:
    service = Service({})
    places = [From(ORDERS, 7), From(TopicQueue("users", 1), "earliest")]
    asked: SentRequest = ask_for_many(service, places, RECORDS, {"tag": "red", "wait_ms": None, "max_bytes": 9})
    assert asked is not None
    queues = [
        {"topic": "orders", "queue_id": 0, "offset": 7},
        {"topic": "users", "queue_id": 1, "offset": "earliest"},
    ]
    assert service.bodies == [{"tag": ["red"], "max_bytes": 9, "queues": queues}]
