from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator

import pytest

from tests.certificates import Authority
from tidemark.client.wire.frame_socket import FrameSocket
from tidemark.errors import FrameIllegalError, TlsFilesError
from tidemark.remoting.frame import Frame, request
from tidemark.remoting.framing import encode
from tidemark.tls.credentials import Credentials

LONG_S = 20.0


def frame(number: int, size: int = 10) -> bytes:
    return encode(request(1, {"n": str(number)}, bytes([number % 256]) * size, opaque=number))


def take(connection: FrameSocket, count: int) -> list[Frame]:
    """Return *count* frames."""
    frames: list[Frame] = []
    deadline = time.monotonic() + LONG_S
    while len(frames) < count:
        assert time.monotonic() < deadline
        frames += connection.receive(1.0)
    return frames


@pytest.fixture
def pair() -> Iterator[tuple[FrameSocket, socket.socket]]:
    """Return a connection and its other side."""
    near, far = socket.socketpair()
    with near, far:
        far.settimeout(LONG_S)
        yield FrameSocket(near), far


Pair = tuple[FrameSocket, socket.socket]


def test_frames_are_received_whole_from_any_pieces(pair: Pair) -> None:
    near, far = pair
    data = frame(1) + frame(2, 70_000) + frame(3)

    def send() -> None:
        for at in range(0, len(data), 997):
            far.sendall(data[at : at + 997])

    sender = threading.Thread(target=send)
    sender.start()
    frames = take(near, 3)
    sender.join()
    assert [(one.opaque, len(one.body), one.fields) for one in frames] == [
        (1, 10, {"n": "1"}),
        (2, 70_000, {"n": "2"}),
        (3, 10, {"n": "3"}),
    ]


def test_a_wait_without_bytes_ends_with_no_frames(pair: Pair) -> None:
    near, far = pair
    assert near.receive(0.0) == []
    assert not near.has_input()
    far.sendall(frame(1)[:5])
    assert near.has_input()
    assert near.receive(LONG_S) == [], "a part of a frame is no frame"


def test_a_receive_is_small_until_more_bytes_arrive_than_it_takes(pair: Pair) -> None:
    near, far = pair
    far.sendall(bytes(100_000))
    sizes: list[int] = []
    while sum(sizes) < 100_000:
        sizes.append(len(near.receive_bytes(LONG_S)))
    assert sizes[0] == 16 << 10
    assert sizes[1] > 16 << 10
    far.sendall(bytes(100))
    assert len(near.receive_bytes(LONG_S)) == 100
    far.sendall(bytes(100_000))
    assert len(near.receive_bytes(LONG_S)) == 16 << 10


def test_a_connection_is_between_frames_unless_it_has_a_part_of_one(pair: Pair) -> None:
    near, far = pair
    assert near.is_between_frames
    for data, is_between in ((frame(1), True), (frame(1)[:20], False), (frame(1)[20:], True)):
        far.sendall(data)
        near.receive(LONG_S)
        assert near.is_between_frames == is_between


def test_an_idle_connection_takes_half_of_its_buffer_at_once(pair: Pair) -> None:
    """It must not take more than that: a send on an event loop would wait."""
    near, _ = pair
    size = 1
    while near.takes_now(2 * size):
        size *= 2
    assert near.takes_when_idle(size)
    assert not near.takes_when_idle(2 * size)


def test_an_ended_connection_raises(pair: Pair) -> None:
    near, far = pair
    far.close()
    assert near.has_input()
    with pytest.raises(ConnectionResetError):
        near.receive(LONG_S)


def test_bytes_that_are_no_frame_raise(pair: Pair) -> None:
    near, far = pair
    far.sendall(b"HTTP/1.1 400 Bad Request\r\n")
    with pytest.raises(FrameIllegalError):
        near.receive(LONG_S)


def test_a_frame_larger_than_the_buffers_is_sent_while_the_other_side_reads(pair: Pair) -> None:
    near, far = pair
    data = frame(1, 8 << 20)
    received = bytearray()

    def read() -> None:
        while len(received) < len(data):
            received.extend(far.recv(1 << 20))

    reader = threading.Thread(target=read)
    reader.start()
    near.send(data, LONG_S)
    reader.join(LONG_S)
    assert bytes(received) == data


def test_a_send_that_the_other_side_does_not_take_times_out(pair: Pair) -> None:
    near, _ = pair
    with pytest.raises(TimeoutError):
        near.send(frame(1, 32 << 20), 0.05)


@pytest.mark.parametrize("size", [1, 1_000, 300_000])
def test_a_send_that_is_taken_now_does_not_wait(size: int) -> None:
    """The kernel's room ends, and is there again when the other side has read."""
    with listening() as (server, address):
        near = FrameSocket.connect(address, Credentials(), is_tls=False, timeout_s=LONG_S)
        far, _ = server.accept()
        sent = 0
        while near.takes_now(size) and sent < 20_000_000:
            near.send(bytes(size), 0)
            sent += size
            size = max(size, sent // 100)  # so that small sends end
        assert 100_000 < sent < 20_000_000
        with far:
            received = 0
            while received < sent:
                received += len(far.recv(1 << 20))
        deadline = time.monotonic() + LONG_S
        while not near.takes_now(size):
            assert time.monotonic() < deadline
        near.close()
    with pytest.raises((OSError, ValueError)):
        near.takes_now(size)


@pytest.mark.parametrize("is_closed", [False, True])
def test_end_ends_the_wait_of_another_thread_and_tells_the_other_side(pair: Pair, is_closed: bool) -> None:
    """Closing does so too: a forked process may hold a copy of the descriptor."""
    near, far = pair
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            while True:
                near.receive(LONG_S)
        except OSError as error:
            raised.append(error)

    if is_closed:
        copy = socket.fromfd(near.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)
        near.close()
        assert far.recv(10) == b""
        copy.close()
        return
    waiting = threading.Thread(target=wait)
    waiting.start()
    near.end()
    waiting.join(LONG_S)
    assert len(raised) == 1
    assert far.recv(10) == b""


@contextlib.contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LONG_S)
        yield server, f"127.0.0.1:{server.getsockname()[1]}"


def test_a_connection_notices_a_host_that_is_gone() -> None:
    """The kernel asks an idle host, and gives up bytes that are not confirmed."""
    with listening() as (_, address):
        connection = FrameSocket.connect(address, Credentials(), is_tls=False, timeout_s=LONG_S)
        made = connection._socket
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        assert [made.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [1, 1, 1, 1_000]
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        connection.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:x", ""])
def test_an_address_without_a_port_is_a_value_error(address: str) -> None:
    with pytest.raises(ValueError, match="int"):
        FrameSocket.connect(address, Credentials(), is_tls=False, timeout_s=1.0)


def test_a_refused_connection_raises() -> None:
    with listening() as (_, address):
        pass
    with pytest.raises(OSError, match="refused"):
        FrameSocket.connect(address, Credentials(), is_tls=False, timeout_s=LONG_S)


@contextlib.contextmanager
def serving_tls(authority: Authority) -> Iterator[tuple[str, list[socket.socket]]]:
    """Serve one TLS connection. Yield the address, and the accepted connections."""
    pair = authority.issue("frames")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    accepted: list[socket.socket] = []
    with listening() as (server, address):

        def accept() -> None:
            with contextlib.suppress(OSError):
                accepted.append(context.wrap_socket(server.accept()[0], server_side=True))

        thread = threading.Thread(target=accept)
        thread.start()
        yield address, accepted
        thread.join()
    for one in accepted:
        one.close()


def test_frames_go_both_ways_over_tls(authority: Authority) -> None:
    """One thread sends while another receives; frames are larger than a TLS record."""
    with serving_tls(authority) as (address, accepted):
        near = FrameSocket.connect(address, Credentials(authority.ca), is_tls=True, timeout_s=LONG_S)
        while not accepted:
            time.sleep(0.001)
        far = FrameSocket(accepted[0])
        data = b"".join(frame(number, 300_000) for number in range(20))
        frames: dict[str, list[Frame]] = {}

        def read(name: str, connection: FrameSocket) -> None:
            frames[name] = take(connection, 20)

        readers = [threading.Thread(target=read, args=one) for one in (("near", near), ("far", far))]
        senders = [threading.Thread(target=one.send, args=(data, LONG_S)) for one in (near, far)]
        for thread in (*readers, *senders):
            thread.start()
        for thread in (*readers, *senders):
            thread.join(LONG_S)
        for name in ("near", "far"):
            assert [(one.opaque, len(one.body)) for one in frames[name]] == [(n, 300_000) for n in range(20)]
        near.close()


def test_a_certificate_that_is_not_trusted_raises(authority: Authority) -> None:
    with serving_tls(authority) as (address, _), pytest.raises(ssl.SSLError):
        FrameSocket.connect(address, Credentials(), is_tls=True, timeout_s=LONG_S)


def test_unusable_files_raise(tmp_path: object) -> None:
    with listening() as (_, address), pytest.raises(TlsFilesError):
        FrameSocket.connect(address, Credentials(f"{tmp_path}/none"), is_tls=True, timeout_s=LONG_S)
