"""Health checks of containers: one check of a socket or of locks, with the standard library only.

    python -I -S tidemark/healthcheck.py (writer | query | pipeline)

Exit status 0 means healthy. It runs every few seconds, so it must cost no more than the start of a bare interpreter:
it imports no module of Tidemark, no gRPC and no pydantic. Settings come from the environment.
"""

from __future__ import annotations

import os
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

_TIMEOUT_S = 4.0

# HTTP/2 (RFC 9113), reduced to one call.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_END_STREAM, _END_HEADERS, _ACK = 0x1, 0x4, 0x1
_EMPTY_MESSAGE = bytes(5)  # gRPC's prefix: not compressed, length 0
_SERVING = b"\x00\x00\x00\x00\x02\x08\x01"  # HealthCheckResponse, status 1
_CALL_HEADERS = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/grpc.health.v1.Health/Check"),
    (b":authority", b"localhost"),
    (b"content-type", b"application/grpc"),
    (b"te", b"trailers"),
    (b"grpc-timeout", b"3S"),
)

# `tidemark/indexer/marks`, docs/format.md §8: words of 8 bytes in the machine's order.
_MARKS_SIZE, _SHARDS_WORD, _ALIVE_WORD = 4096, 1, 5
_LONGEST_QUIET_MS = 10_000
_LONGEST_HAND_OVER_S = 2.0
_LOOK_AGAIN_S = 0.02


def _setting(name: str, default: str) -> str:
    return os.environ.get(f"TIDEMARK_{name}") or default


def _connect(listen: str, alpn: str) -> socket.socket:
    """Connect to this host's port of *listen*, with TLS if the service uses it.

    It trusts any certificate, because it connects to its own container, and presents the service's own one if clients
    need one. Raises OSError if it cannot connect.
    """
    connection = socket.socket()
    connection.settimeout(_TIMEOUT_S)
    connection.connect(("127.0.0.1", int(listen.rpartition(":")[2])))
    cert, key = _setting("TLS_CERT", ""), _setting("TLS_KEY", "")
    if not cert:
        return connection
    context = _context(alpn)
    if _setting("TLS_CLIENT_CA", ""):
        context.load_cert_chain(cert, key)
    return context.wrap_socket(connection)


def _context(alpn: str) -> ssl.SSLContext:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    return context


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _headers() -> bytes:
    """Return the call's headers, each encoded as a literal without indexing (RFC 7541, 6.2.2)."""
    return b"".join(
        b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value for name, value in _CALL_HEADERS
    )


def writer_serves() -> bool:
    """Return True if gRPC's health service on this host's writer port answers SERVING."""
    with _connect(_setting("WRITER_LISTEN", "127.0.0.1:8081"), "h2") as connection:
        connection.sendall(
            _PREFACE
            + _frame(_SETTINGS, 0, 0, b"")
            + _frame(_HEADERS, _END_HEADERS, 1, _headers())
            + _frame(_DATA, _END_STREAM, 1, _EMPTY_MESSAGE)
        )
        stream = connection.makefile("rb")
        while len(head := stream.read(9)) == 9:
            payload = stream.read(int.from_bytes(head[:3], "big"))
            kind, flags, number = head[3], head[4], int.from_bytes(head[5:9], "big")
            if kind == _SETTINGS and not flags & _ACK:
                connection.sendall(_frame(_SETTINGS, _ACK, 0, b""))
            elif kind == _DATA and number == 1:
                return payload == _SERVING
            elif kind == _HEADERS and number == 1 and flags & _END_STREAM:
                return False  # an error response without a message
    return False


def query_answers() -> bool:
    """Return True if `/healthz` on this host's query port answers 200."""
    with _connect(_setting("QUERY_LISTEN", "127.0.0.1:8080"), "http/1.1") as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return connection.makefile("rb").readline().split()[1:2] == [b"200"]


def pipeline_works() -> bool:
    """Return True if a task was alive recently and every shard has a follower.

    A follower holds its shard's lock, which a dead process loses. Tasks that only drain (TIDEMARK_EPOCH_MS=0) hold it
    only briefly.
    """
    folder = f"{_setting('STORE_ROOT', 'data')}/tidemark/indexer"
    try:
        with open(f"{folder}/marks", "rb") as file:
            marks = file.read(_MARKS_SIZE)
    except FileNotFoundError:
        marks = b""
    shards, alive_ms = (int.from_bytes(marks[8 * word :][:8], sys.byteorder) for word in (_SHARDS_WORD, _ALIVE_WORD))
    if not shards:
        sys.stderr.write("the pipeline has not started yet\n")
        return False
    quiet_ms = time.time_ns() // 1_000_000 - alive_ms
    if quiet_ms > _LONGEST_QUIET_MS:
        sys.stderr.write(f"no task of the pipeline was alive in the last {quiet_ms // 1000} s\n")
        return False
    return _setting("EPOCH_MS", "30000") == "0" or _all_followed(folder, shards)


def _all_followed(folder: str, shards: int) -> bool:
    """Return True if every shard is held, after waiting at most the time of a hand-over."""
    give_up = time.monotonic() + _LONGEST_HAND_OVER_S
    alone = list(range(shards))
    while alone := [shard for shard in alone if not _is_held(f"{folder}/shard-{shard}.lock")]:
        if time.monotonic() > give_up:
            sys.stderr.write(f"no process follows the shards {alone}\n")
            return False
        time.sleep(_LOOK_AGAIN_S)
    return True


def _is_held(path: str) -> bool:
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


_CHECKS = {"writer": writer_serves, "query": query_answers, "pipeline": pipeline_works}


def main(arguments: list[str]) -> int:
    """Return the exit status: 0 healthy, 1 not, 2 for an unknown service."""
    check = _CHECKS.get(arguments[0]) if len(arguments) == 1 else None
    if check is None:
        sys.stderr.write("usage: healthcheck.py (writer | query | pipeline)\n")
        return 2
    try:
        return 0 if check() else 1
    except (OSError, ValueError) as error:  # connection or TLS failures; an invalid file or address
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
