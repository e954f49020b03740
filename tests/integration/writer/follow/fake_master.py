"""FakeMaster: a name server and a RocketMQ master in this process, which serve the files of a broker's store.

Its bytes are as a real 5.3.3 was seen to send them; `tests/conformance/broker/test_followed.py` has the real one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tidemark.remoting import Frame, answer_to, decode, encode
from tidemark.remoting.codes import ResponseCode, SlaveCode
from tidemark.remoting.signature import is_signed

NAME = "broker-a"
_POLL_S = 0.01
_HEARTBEAT_S = 0.5


class FakeMaster:
    """A master of the store in *folder*, whose log's files have *file_bytes*.

    end          physical offset below which it has a log; raise it to append
    begin        of its log
    frame_bytes  of a data frame
    settings     further settings of the broker
    secret       if not empty, requests must be signed with it
    reported     the offsets that slaves have reported, in order
    """

    def __init__(self, folder: Path, file_bytes: int, *, end: int | None = None, begin: int = 0) -> None:
        self.folder = folder
        self.file_bytes = file_bytes
        self.end = log_end(folder) if end is None else end
        self.begin = begin
        self.frame_bytes = 32_768
        self.settings: dict[str, str] = {}
        self.secret = ""
        self.change: Callable[[int, bytes], bytes] = lambda _, data: data  # of the bytes that it sends
        self.reported: list[int] = []
        self._tables: dict[str, bytes] = {}
        self._calls = _Server(self._answer_calls)
        self._slaves = _Server(self._serve_slave)

    @property
    def address(self) -> str:
        """host:port of the name server, and of the broker."""
        return f"127.0.0.1:{self._calls.port}"

    @property
    def url(self) -> str:
        """The address to follow."""
        return f"rocketmq://{self.address}/{NAME}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.close()
        self._slaves.close()

    def disconnect(self) -> None:
        """End all connections of slaves."""
        self._slaves.disconnect()

    def set_table(self, name: str, content: Any) -> None:
        """Replace one of the files of config."""
        self._tables[name] = json.dumps(content).encode()

    # -- calls ----------------------------------------------------------------------------------------------------

    def _answer_calls(self, connection: socket.socket) -> None:
        while True:
            head = read_exactly(connection, 4)
            asked = decode(head + read_exactly(connection, int.from_bytes(head, "big")))
            connection.sendall(encode(self._answer(asked)))

    def _answer(self, asked: Frame) -> Frame:
        if self.secret and not is_signed(self.secret, asked.fields):
            return answer_to(asked, ResponseCode.NO_PERMISSION, "no signature")
        return answer_to(asked, ResponseCode.SUCCESS, body=self._body(asked.code))

    def _body(self, code: int) -> bytes:
        match code:
            case SlaveCode.GET_BROKER_CLUSTER_INFO:  # as fastjson writes it: keys of numbers have no quotes
                return b'{"brokerAddrTable":{"%s":{"brokerAddrs":{0:"%s",1:"x:1"},"brokerName":"%s"}}}' % (
                    NAME.encode(),
                    self.address.encode(),
                    NAME.encode(),
                )
            case SlaveCode.GET_BROKER_CONFIG:
                settings = {
                    "brokerIP2": "127.0.0.1",
                    "haListenPort": self._slaves.port,
                    "mappedFileSizeCommitLog": self.file_bytes,
                    **self.settings,
                }
                return "".join(f"{name}={value}\n" for name, value in settings.items()).encode()
            case SlaveCode.GET_BROKER_RUNTIME_INFO:
                table = {"commitLogMinOffset": str(self.begin), "commitLogMaxOffset": str(self.end)}
                return json.dumps({"table": table}).encode()
            case SlaveCode.GET_ALL_TOPIC_CONFIG:
                return self._table("topics.json")
            case SlaveCode.GET_ALL_CONSUMER_OFFSET:
                return self._table("consumerOffset.json")
            case SlaveCode.GET_ALL_DELAY_OFFSET:
                return self._table("delayOffset.json")
        raise AssertionError(code)

    def _table(self, name: str) -> bytes:
        path = self.folder / "config" / name
        return self._tables.get(name) or (path.read_bytes() if path.exists() else b"{}")

    # -- slaves ---------------------------------------------------------------------------------------------------

    def _serve_slave(self, connection: socket.socket) -> None:
        (at,) = struct.unpack(">q", read_exactly(connection, 8))
        self.reported.append(at)
        if at == 0:  # a real master would begin with its last file
            at = self.end - self.end % self.file_bytes
        threading.Thread(target=self._take_reports, args=(connection,), daemon=True).start()
        heard = time.monotonic()
        while True:
            data = self._log(at)
            if data:
                connection.sendall(struct.pack(">qi", at, len(data)) + self.change(at, data))
                at, heard = at + len(data), time.monotonic()
            elif time.monotonic() - heard > _HEARTBEAT_S:
                connection.sendall(struct.pack(">qi", at, 0))
                heard = time.monotonic()
            else:
                time.sleep(_POLL_S)

    def _log(self, at: int) -> bytes:
        """Return the next bytes of one file from *at* on."""
        start = at - at % self.file_bytes
        size = min(self.frame_bytes, self.end - at, start + self.file_bytes - at)
        if at < self.begin or size <= 0:
            return b""
        with (self.folder / "commitlog" / f"{start:020}").open("rb") as file:
            file.seek(at - start)
            return file.read(size)

    def _take_reports(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.reported.append(struct.unpack(">q", read_exactly(connection, 8))[0])


def log_end(folder: Path) -> int:
    """Return the physical offset after the last byte of the log that is not zero."""
    last = max((folder / "commitlog").iterdir())
    return int(last.name) + len(last.read_bytes().rstrip(b"\0"))


class _Server:
    """A server with a thread for each connection, which ends when *serve* raises OSError."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        open_connections = self._open = set[socket.socket]()

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                open_connections.add(self.request)
                with contextlib.suppress(OSError):
                    serve(self.request)
                open_connections.discard(self.request)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def disconnect(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.disconnect()


def read_exactly(connection: socket.socket, size: int) -> bytes:
    """Return *size* bytes; raise ConnectionError at the end of the stream."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the connection has ended")
        data += part
    return data
