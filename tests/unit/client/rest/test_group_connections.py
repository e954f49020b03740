"""Requests to the query services of a group's members."""

from __future__ import annotations

import time

import pytest

from tests.fixed_ports import fixed_port
from tests.unit.client.fake_query import Reply, fake_query
from tidemark.client.rest.connections import Connections
from tidemark.errors import QueryUnreachableError
from tidemark.tls.credentials import Credentials

TIMEOUT_S = 20
NOT_LEADER = Reply(status=421, body=b"{}")


def ok(_: str) -> Reply:
    return Reply(body=b"ok")


def replica(_: str) -> Reply:
    return NOT_LEADER


def nobody() -> str:
    return f"http://127.0.0.1:{fixed_port()}"


def connections(*urls: str) -> Connections:
    return Connections("|".join(urls), timeout_s=TIMEOUT_S, credentials=Credentials())


def asked(used: Connections) -> bytes:
    return bytes(used.get("/v1/x", {}, "*/*").body)


def test_a_service_that_does_not_answer_is_left_for_the_next() -> None:
    with fake_query(ok) as alive:
        used = connections(nobody(), alive.url)
        for _ in range(2):
            assert asked(used) == b"ok"
        assert used.service.url == alive.url
        used.close()


def test_an_answer_that_breaks_off_is_asked_of_the_next() -> None:
    with fake_query(lambda _: Reply(missing_bytes=1)) as dying, fake_query(ok) as alive:
        used = connections(dying.url, alive.url)
        assert asked(used) == b"ok"
        assert used.service.url == alive.url
        used.close()


def test_an_answer_whose_head_is_known_is_not_replaced_by_that_of_another_service() -> None:
    with fake_query(lambda _: Reply(missing_bytes=1)) as dying, fake_query(ok) as alive:
        used = connections(dying.url, alive.url)
        sent = used.ask("/v1/x", {}, "*/*")
        assert sent.response().status == 200
        with pytest.raises(QueryUnreachableError):
            sent.answer()
        assert asked(used) == b"ok"
        used.close()


def test_if_every_answer_breaks_off_the_request_fails() -> None:
    with fake_query(lambda _: Reply(missing_bytes=1)) as first, fake_query(lambda _: Reply(missing_bytes=1)) as second:
        used = connections(first.url, second.url)
        with pytest.raises(QueryUnreachableError):
            asked(used)
        assert (len(first.asked), len(second.asked)) == (1, 1)
        used.close()


def test_what_only_the_writers_service_does_is_asked_of_the_next() -> None:
    with fake_query(replica) as first, fake_query(ok) as second:
        used = connections(first.url, second.url)
        assert asked(used) == b"ok"
        assert (len(first.asked), len(second.asked)) == (1, 1)
        used.get("/v1/x", {}, "*/*")
        assert (len(first.asked), len(second.asked)) == (1, 2), "the next request begins there"
        used.close()


def test_a_group_without_a_writer_is_asked_until_it_has_one() -> None:
    began = time.monotonic()

    def elected(_: str) -> Reply:
        return NOT_LEADER if time.monotonic() < began + 0.5 else Reply(body=b"ok")

    with fake_query(replica) as first, fake_query(elected) as second:
        used = connections(first.url, second.url)
        assert asked(used) == b"ok"
        used.close()


def test_a_single_service_answers_as_it_is() -> None:
    with fake_query(replica) as only:
        used = connections(only.url)
        assert used.get("/v1/x", {}, "*/*").status == 421
        used.close()


def test_a_request_that_must_not_be_sent_twice_fails_and_the_next_one_goes_elsewhere() -> None:
    with fake_query(ok) as alive:
        used = connections(nobody(), alive.url)
        with pytest.raises(QueryUnreachableError):
            used.ask("/v1/x", {}, "*/*", is_repeatable=False)
        assert bytes(used.ask("/v1/x", {}, "*/*", is_repeatable=False).answer().body) == b"ok"
        used.close()


def test_if_no_service_answers_the_request_fails() -> None:
    used = connections(nobody(), nobody())
    with pytest.raises(QueryUnreachableError):
        used.get("/v1/x", {}, "*/*")
    used.close()
