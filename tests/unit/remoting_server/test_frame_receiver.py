from __future__ import annotations

import pytest

from tests.unit.remoting.frames import frame_bytes
from tidemark.errors import FrameIllegalError
from tidemark.remoting import request
from tidemark.remoting.frame import Frame
from tidemark.remoting.framing import encode
from tidemark.remoting_server.frame_receiver import FrameReceiver

SHARED_BYTES = 64 << 10
SIZES = (0, 10, 40_000, 5, 300_000, 70_000, 0)


def frames(sizes: tuple[int, ...] = SIZES) -> bytes:
    return b"".join(encode(request(1, body=body(number, size), opaque=number)) for number, size in enumerate(sizes))


def body(number: int, size: int) -> bytes:
    return (b"%07d" % number * (size // 7 + 1))[:size]


def receive(receiver: FrameReceiver, data: bytes, piece: int = 1 << 20) -> list[Frame]:
    """Write *data* as the event loop does, at most *piece* bytes at once."""
    found, at = [], 0
    while at < len(data):
        room = receiver.room()
        size = min(len(room), piece, len(data) - at)
        room[:size] = data[at : at + size]
        found += receiver.received(size)
        at += size
    return found


@pytest.mark.parametrize("piece", [1, 7, 8, 9, 1_000, 32_768, 40_000, 1 << 20])
def test_frames_are_found_in_pieces_of_any_size(piece: int) -> None:
    """The frames are compared at the end, after the memory was used for later ones."""
    receiver = FrameReceiver(memoryview(bytearray(SHARED_BYTES)), 1 << 20)
    sizes = SIZES if piece > 9 else SIZES[:4]
    found = receive(receiver, frames(sizes), piece)
    assert [(frame.opaque, bytes(frame.body)) for frame in found] == [
        (number, body(number, size)) for number, size in enumerate(sizes)
    ]
    assert len(receiver) == 0


def test_connections_share_the_memory() -> None:
    shared = memoryview(bytearray(SHARED_BYTES))
    first, second = FrameReceiver(shared, 1 << 20), FrameReceiver(shared, 1 << 20)
    data = frames((50_000, 90_000))
    found = receive(first, data[:60_000])
    found += receive(second, data)
    found += receive(first, data[60_000:])
    assert [bytes(frame.body) for frame in found] == [body(0, 50_000), body(0, 50_000)] + [body(1, 90_000)] * 2


def test_the_rest_of_a_large_frame_is_received_in_its_place() -> None:
    receiver = FrameReceiver(memoryview(bytearray(SHARED_BYTES)), 1 << 20)
    data = frames((100_000,))
    assert receive(receiver, data[:30_000]) == []
    room = receiver.room()
    assert len(room) == len(data) - 30_000
    (frame,) = receive(receiver, data[30_000:])
    assert isinstance(frame.body, memoryview)
    assert (frame.body.obj is room.obj, frame.body.readonly) == (True, True)


def test_a_frame_that_has_hardly_begun_takes_little_memory() -> None:
    """A client could otherwise take 16 MiB with eight bytes."""
    receiver = FrameReceiver(memoryview(bytearray(SHARED_BYTES)), 16 << 20)
    data = frames((10 << 20,))
    for end in (8, 1_000, 1 << 20, 5 << 20):
        receiver = FrameReceiver(memoryview(bytearray(SHARED_BYTES)), 16 << 20)
        receive(receiver, data[:end])
        assert end <= len(receiver) <= 4 * (end + SHARED_BYTES)


@pytest.mark.parametrize("size", [8, 40_000])
def test_illegal_bytes_are_refused(size: int) -> None:
    receiver = FrameReceiver(memoryview(bytearray(SHARED_BYTES)), 1_000)
    with pytest.raises(FrameIllegalError):
        receive(receiver, frame_bytes(b"{}", bytes(50_000))[:size])
    receiver = FrameReceiver(memoryview(bytearray(SHARED_BYTES)), 1 << 20)
    with pytest.raises(FrameIllegalError):
        receive(receiver, frame_bytes(b"no json", bytes(50_000)), 30_000)
