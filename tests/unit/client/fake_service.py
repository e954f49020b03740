"""A query service over real HTTP that serves queues of a test, and keeps the offsets of one group."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from tests.unit.client.received_messages import message_json, page_json
from tidemark.client.received_message import TopicQueue

GENEROUS_S = 30.0
_LONG_POLL_S = 0.05  # instead of 15 s


class ProblemError(Exception):
    """A refusal: its HTTP status, and the members of its problem document."""

    def __init__(self, status: int, reason: str, **members: Any) -> None:
        super().__init__(reason)
        self.status = status
        self.members = {"status": status, "reason": reason, "detail": reason, **members}


class Request(NamedTuple):
    """One request that came."""

    method: str
    path: str
    parameters: dict[str, list[str]]
    body: Any


class FakeService:
    """Queues by topic and number, from their minimal offsets on. is_silent: pulls are held until it is False."""

    def __init__(self, url: str = "") -> None:
        self.url = url
        self.queues: dict[TopicQueue, list[bytes]] = {}
        self.min_offsets: dict[TopicQueue, int] = {}
        self.properties: dict[bytes, dict[str, str]] = {}  # by body
        self.offsets: dict[TopicQueue, int] = {}
        self.left_out: set[TopicQueue] = set()  # of the answers to pulls of many queues
        self.requests: list[Request] = []
        self.is_silent = False

    def add(self, queue: TopicQueue, *bodies: bytes) -> None:
        self.queues.setdefault(queue, []).extend(bodies)

    def paths(self, ending: str) -> list[str]:
        """Return the paths of all requests that end so."""
        return [request.path for request in self.requests if request.path.endswith(ending)]

    def answer(self, request: Request) -> Any:
        """Return the JSON value for *request*, or raise a ProblemError."""
        self.requests.append(request)
        match [unquote(part) for part in request.path.strip("/").split("/")[1:]]:
            case ["topics", topic]:
                return self._topic(topic)
            case ["topics", topic, "queues", number]:
                first, end = self._bounds(TopicQueue(topic, int(number)))
                return {"min_offset": first, "max_offset": end}
            case ["topics", topic, "queues", number, "messages"]:
                (offset,) = request.parameters["offset"]
                most = int(request.parameters.get("max_messages", ["32"])[0])
                return self._page(TopicQueue(topic, int(number)), offset, most)
            case ["pull"]:
                asked = [(TopicQueue(one["topic"], one["queue_id"]), one["offset"]) for one in request.body["queues"]]
                pages = [
                    (queue, self._page(queue, offset, 32)) for queue, offset in asked if queue not in self.left_out
                ]
                return {"answers": [{**queue._asdict(), **page} for queue, page in pages]}
            case ["groups", _]:
                return {"queues": [{**queue._asdict(), "offset": offset} for queue, offset in self.offsets.items()]}
            case ["groups", _, "offsets"]:
                for one in request.body["offsets"]:
                    self.offsets[TopicQueue(one["topic"], one["queue_id"])] = one["offset"]
                return {}
        raise ProblemError(404, "MESSAGE_NOT_FOUND")

    def _topic(self, topic: str) -> Any:
        queues = sorted(queue for queue in self.queues if queue.topic == topic)
        if not queues:
            raise ProblemError(404, "TOPIC_NOT_FOUND")
        ends = [{"queue_id": queue.queue_id, "max_offset": self._bounds(queue)[1]} for queue in queues]
        return {"queue_ids": [queue.queue_id for queue in queues], "queues": ends}

    def _bounds(self, queue: TopicQueue) -> tuple[int, int]:
        first = self.min_offsets.get(queue, 0)
        return first, first + len(self.queues[queue])

    def _page(self, queue: TopicQueue, place: str | int, most: int) -> Any:
        deadline = time.monotonic() + _LONG_POLL_S
        while True:
            first, end = self._bounds(queue)
            at = {"earliest": first, "latest": end}.get(str(place))
            offset = int(place) if at is None else at
            if offset < first:
                raise ProblemError(416, "OFFSET_TOO_SMALL", min_offset=first, max_offset=end)
            if offset > end:
                raise ProblemError(416, "OFFSET_OUT_OF_RANGE", min_offset=first, max_offset=end)
            is_over = time.monotonic() > deadline or offset < end
            if is_over and not self.is_silent:
                break
            time.sleep(0.002)
        found = list(enumerate(self.queues[queue][offset - first : offset - first + most], offset))
        messages = [message_json(number, body, properties=self.properties.get(body, {})) for number, body in found]
        return page_json(offset, [number for number, _ in found], end=end, messages=messages, min_offset=first)


@contextlib.contextmanager
def serving() -> Iterator[FakeService]:
    """A service that runs within the block."""
    service = FakeService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, parts.path, parse_qs(parts.query), orjson.loads(body) if body else None)
            status, media_type = 200, "application/json"
            try:
                answer = service.answer(request)
            except ProblemError as problem:
                status, media_type, answer = problem.status, "application/problem+json", problem.members
            content = orjson.dumps(answer)
            with contextlib.suppress(OSError):  # the client has closed the connection
                self.send_response(status)
                self.send_header("Content-Type", media_type)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        service.is_silent = False
        server.shutdown()
        server.server_close()
        thread.join()
