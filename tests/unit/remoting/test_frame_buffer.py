from __future__ import annotations

import pytest

from tests.unit.remoting.frames import frame_bytes
from tidemark.errors import FrameIllegalError
from tidemark.remoting.frame import Frame, request
from tidemark.remoting.frame_buffer import FrameBuffer
from tidemark.remoting.framing import encode

FRAMES = [encode(request(1, {"n": str(number)}, bytes(number * 100), opaque=number)) for number in range(5)]


def numbers(frames: list[Frame]) -> list[tuple[int, int]]:
    return [(frame.opaque, len(frame.body)) for frame in frames]


@pytest.mark.parametrize("size", [1, 7, 8, 150, 1000, 10_000])
def test_frames_are_found_in_pieces_of_any_size(size: int) -> None:
    buffer, data = FrameBuffer(), b"".join(FRAMES)
    found = [frame for at in range(0, len(data), size) for frame in buffer.take(data[at : at + size])]
    assert numbers(found) == [(number, number * 100) for number in range(5)]
    assert len(buffer) == 0


def test_the_rest_of_the_last_piece_is_kept() -> None:
    buffer = FrameBuffer()
    assert numbers(buffer.take(FRAMES[1] + FRAMES[2][:9])) == [(1, 100)]
    assert len(buffer) == 9
    assert numbers(buffer.take(FRAMES[2][9:] + FRAMES[3] + b"\0")) == [(2, 200), (3, 300)]
    assert len(buffer) == 1


def test_bodies_are_parts_of_the_received_bytes_and_outlive_later_pieces() -> None:
    buffer = FrameBuffer()
    data = FRAMES[3] + FRAMES[4]
    first, second = buffer.take(data)
    assert isinstance(first.body, memoryview)
    assert first.body.obj is data is second.body.obj  # type: ignore[union-attr]
    (third,) = buffer.take(FRAMES[2])
    assert (bytes(first.body), bytes(third.body)) == (bytes(300), bytes(200))


@pytest.mark.parametrize("is_split", [False, True])
def test_a_frame_above_the_limit_is_refused_before_it_has_arrived(is_split: bool) -> None:
    buffer = FrameBuffer(1_000)
    data = frame_bytes(b"{}", bytes(1_000))[:8]
    if is_split:
        assert buffer.take(data[:3]) == []
        data = data[3:]
    with pytest.raises(FrameIllegalError) as refused:
        buffer.take(data)
    assert refused.value.facts["limit"] == 1_000


def test_a_header_that_is_illegal_is_refused() -> None:
    with pytest.raises(FrameIllegalError):
        FrameBuffer().take(frame_bytes(b"no json"))
