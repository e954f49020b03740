"""The REST client: its requests, and its handling of responses and problems."""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import threading

import orjson
import pytest

from tests.fixed_ports import fixed_port
from tests.unit.client.fake_query import Reply, fake_query
from tidemark.client import Query
from tidemark.client.rest import query_service
from tidemark.errors import OffsetTooSmallError, StoreError, UnavailableError


def _page(path: str) -> Reply:
    """Return a page of three messages of a queue that holds offsets 0 … 9."""
    offset = int(path.partition("offset=")[2].partition("&")[0])
    next_offset = min(offset + 3, 10)
    facts = {"Status": "FOUND", "Requested-Offset": offset, "Next-Offset": next_offset, "Min-Offset": 0}
    facts |= {"Max-Offset": 10, "Message-Count": next_offset - offset, "Skipped": "[]"}
    body = bytes([offset]) * 300_000
    return Reply(200, body, {f"Tidemark-{name}": str(value) for name, value in facts.items()})


def test_parameters_without_a_value_are_not_sent() -> None:
    """None is absent; a list is repeated; special characters in a path are quoted."""
    with fake_query(lambda _: Reply(body=b'{"messages":[]}')) as fake, Query(fake.url) as query:
        assert query.pull("%LMQ%t", 2, "earliest", tag=["A", "B"], wait_ms=None)["messages"] == []
    assert fake.asked == ["/v1/topics/%25LMQ%25t/queues/2/messages?offset=earliest&tag=A&tag=B"]


def test_the_path_of_the_service_url_is_kept() -> None:
    """A proxy may serve the service below a path."""
    with fake_query(lambda _: Reply()) as fake, Query(f"{fake.url}/logs/") as query:
        query.watermark()
    assert fake.asked == ["/logs/v1/watermark"]


def test_a_problem_is_raised_by_its_reason_with_its_facts() -> None:
    """The standard members of RFC 9457 are not facts."""
    problem = {"type": "about:blank", "title": "Gone", "status": 410, "reason": "OFFSET_TOO_SMALL", "min_offset": 7}
    with fake_query(lambda _: Reply(410, orjson.dumps(problem))) as fake, Query(fake.url) as query:
        for ask in (query.pull, query.pull_records, query.pull_table):
            with pytest.raises(OffsetTooSmallError) as raised:
                ask("t", 0, 1)
            assert raised.value.facts == {"min_offset": 7}
        with pytest.raises(OffsetTooSmallError):
            list(query.record_pages("t", 0, 1))


def test_an_error_that_is_not_a_problem_document_is_a_store_error() -> None:
    """A proxy may answer anything."""
    with (
        fake_query(lambda _: Reply(502, b"<html>")) as fake,
        Query(fake.url) as query,
        pytest.raises(StoreError, match="HTTP 502"),
    ):
        query.watermark()


def test_a_refused_connection_is_unavailable() -> None:
    """The text contains the address."""
    url = f"http://127.0.0.1:{fixed_port()}"
    with Query(url) as query, pytest.raises(UnavailableError, match=url):
        query.watermark()


def test_an_answer_that_breaks_off_is_unavailable() -> None:
    """A partial response is not returned."""
    with (
        fake_query(lambda _: Reply(missing_bytes=1)) as fake,
        Query(fake.url) as query,
        pytest.raises(UnavailableError, match="ended after 2 of 3 bytes"),
    ):
        query.watermark()


@pytest.mark.parametrize("size", [(1 << 20) - 1, 1 << 20, (3 << 20) + 17])
def test_a_large_answer_is_whole(size: int) -> None:
    """Sizes around the limit for reading in pieces are covered; the connection stays usable."""
    body = random.Random(size).randbytes(size)
    headers = {"Tidemark-Status": "FOUND", "Tidemark-Skipped": "[]"} | {
        f"Tidemark-{name}": "1"
        for name in ("Requested-Offset", "Next-Offset", "Min-Offset", "Max-Offset", "Message-Count")
    }
    replies = [Reply(200, body, headers=headers), Reply()]
    with fake_query(lambda _: replies[len(fake.asked) - 1]) as fake, Query(fake.url, timeout_s=10) as query:
        assert query.pull_records("t", 0, 0).data == body
        query.watermark()
        assert len(fake.connections) == 1


def test_a_large_answer_that_breaks_off_is_unavailable() -> None:
    """The error is raised when the next piece never comes."""
    with (
        fake_query(lambda _: Reply(200, bytes(2 << 20), missing_bytes=1)) as fake,
        Query(fake.url, timeout_s=10) as query,
        pytest.raises(UnavailableError, match=f"ended after {2 << 20} of {(2 << 20) + 1} bytes"),
    ):
        query.watermark()


def test_a_silent_service_is_unavailable_after_the_timeout() -> None:
    """The connection is accepted, but no response comes."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Query(url, timeout_s=0.05) as query, pytest.raises(UnavailableError, match="timed out"):
            query.watermark()


def test_a_connection_is_used_again() -> None:
    """Sequential requests share one connection, even after a problem; a closed connection is replaced."""
    replies = [Reply(), Reply(404, b"{}"), Reply(headers={"Connection": "close"}), Reply()]
    with fake_query(lambda _: replies[len(fake.asked) - 1]) as fake, Query(fake.url) as query:
        query.watermark()
        with pytest.raises(StoreError):
            query.watermark()
        query.watermark()
        assert len(fake.connections) == 1
        query.watermark()
        assert len(fake.connections) == 2


def test_a_page_of_records_has_its_data_and_offsets() -> None:
    with fake_query(_page) as fake, Query(fake.url) as query:
        page = query.pull_records("t", 0, 4, max_bytes=1 << 20)
    assert fake.asked == ["/v1/topics/t/queues/0/messages?offset=4&max_bytes=1048576"]
    assert bytes(page.data) == bytes([4]) * 300_000
    assert page[1:] == ("FOUND", 4, 7, 0, 10, 3, [])


def test_a_page_that_breaks_off_comes_from_the_next_service() -> None:
    """Its head was whole. The other service may answer with a page of another length."""

    def dying(path: str) -> Reply:
        page = _page(path)
        return page._replace(missing_bytes=1) if len(first.asked) > 1 else page

    def shorter(path: str) -> Reply:
        page = _page(path)
        end = min(int(page.headers["Tidemark-Requested-Offset"]) + 2, 10)
        return page._replace(headers={**page.headers, "Tidemark-Next-Offset": str(end)})

    with fake_query(dying) as first, fake_query(shorter) as second, Query(f"{first.url}|{second.url}") as query:
        pages = [(page.requested_offset, page.next_offset) for page in query.record_pages("t", 0, 0)]
    assert pages == [(0, 3), (3, 5), (5, 7), (7, 9), (9, 10)]


def test_pages_follow_each_other_to_the_end() -> None:
    """Each page comes once; the next one is requested before a page is returned, and none after the end."""
    with fake_query(_page) as fake, Query(fake.url) as query:
        pages = query.record_pages("t", 0, 0)
        first = next(pages)
        fake.wait_for_requests(2)
        assert bytes(first.data[:3]) == bytes([0, 0, 0])
        assert (first.requested_offset, first.next_offset) == (0, 3)
        assert [page.requested_offset for page in pages] == [3, 6, 9]
        assert (len(fake.asked), len(fake.connections)) == (4, 2)


def test_pages_with_wait_ms_continue_at_the_end() -> None:
    """At the end the next page is requested too; if the reader stops, its connection is not used again."""
    with fake_query(_page) as fake, Query(fake.url) as query:
        pages = query.record_pages("t", 0, 9, wait_ms=10)
        assert next(pages).requested_offset == 9
        fake.wait_for_requests(2)
        assert fake.asked[1].endswith("offset=10&wait_ms=10")
        del pages
        assert query.pull_records("t", 0, 3).requested_offset == 3


def test_an_address_that_is_not_http_is_refused() -> None:
    """Other addresses are an error of the caller."""
    with pytest.raises(ValueError, match="ftp"):
        Query("ftp://127.0.0.1")


class IdleServer:
    """A service that answers each connection's first request and closes it at the second, like an idle connection."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._socket.accept()[0],), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as received:
            self.requests.append(received.readline().split(b" ")[0].decode())
            headers = http.client.parse_headers(received)
            received.read(int(headers.get("Content-Length", 0)))  # it may come after the headers
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            received.readline()  # the connection is closed without an answer

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_a_request_on_a_connection_that_the_service_closes_as_idle_is_repeated(method: str) -> None:
    server = IdleServer()
    with contextlib.closing(server), Query(server.url) as query:
        for _ in range(3):
            assert query.put("/x", {}) == {} if method == "put" else getattr(query, method)("/x") == {}
    assert server.requests == [method.upper()] * 3


def test_a_post_that_may_have_been_processed_is_not_repeated() -> None:
    server = IdleServer()
    with contextlib.closing(server), Query(server.url) as query:
        query.post("/x", {})
        with pytest.raises(UnavailableError):
            query.post("/x", {})
    assert server.requests == ["POST"]


def test_a_post_gets_no_connection_that_has_been_idle_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_service, "_LONGEST_IDLE_S", 0.0)
    server = IdleServer()
    with contextlib.closing(server), Query(server.url) as query:
        for _ in range(3):
            assert query.post("/x", {}) == {}
    assert server.requests == ["POST"] * 3
