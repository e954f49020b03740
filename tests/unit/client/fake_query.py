"""A query service over real HTTP that gives a test's answers."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Reply(NamedTuple):
    """An answer. missing_bytes: announced in the length, but never sent."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = {}
    missing_bytes: int = 0


class FakeQuery:
    """The service's address and the requests that it received."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[str] = []
        self.connections: set[object] = set()

    def wait_for_requests(self, count: int) -> None:
        """Block until *count* requests have arrived."""
        deadline = time.monotonic() + 10
        while len(self.asked) < count:
            assert time.monotonic() < deadline, self.asked
            time.sleep(0.002)


@contextlib.contextmanager
def fake_query(reply: Callable[[str], Reply]) -> Iterator[FakeQuery]:
    """Serve; *reply* returns the answer for each path."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            fake.asked.append(self.path)
            fake.connections.add(self.client_address)
            answer = reply(self.path)
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body) + answer.missing_bytes))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)
            self.close_connection = answer.missing_bytes > 0 or answer.headers.get("Connection") == "close"

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake = FakeQuery(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
