"""A service over real HTTP that answers each request with the request itself."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson


class _Echo(BaseHTTPRequestHandler):
    """Answers each request with its own parts, and with the number of its connection."""

    protocol_version = "HTTP/1.1"

    def _echo(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = {
            "method": self.command,
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": body.decode(),
            "connection": self.client_address[1],
        }
        content = orjson.dumps(answer)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = _echo  # noqa: N815 - the base class's names

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def echo_service(context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve host:port, with TLS if *context* is given."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
