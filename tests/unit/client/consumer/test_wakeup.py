from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tidemark.client.consumer.wakeup import Bell

GENEROUS_S = 30.0


@pytest.fixture
def bell() -> Iterator[Bell]:
    made = Bell()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def test_a_readable_descriptor_ends_the_wait_and_is_returned(
    bell: Bell, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    far.send(b"x")
    assert bell.wait([near.fileno(), far.fileno()], GENEROUS_S) == ([near.fileno()], False)


def test_no_descriptor_is_returned_after_the_timeout(bell: Bell, pair: tuple[socket.socket, socket.socket]) -> None:
    assert bell.wait([pair[0].fileno()], 0.01) == ([], False)
    assert bell.wait([pair[0].fileno()], -1.0) == ([], False), "a deadline that has passed waits not at all"


def test_a_wakeup_from_another_thread_ends_the_wait(bell: Bell) -> None:
    waiting = threading.Thread(target=bell.wait, args=((), 600.0), daemon=True)
    waiting.start()
    bell.ring()
    waiting.join(GENEROUS_S)
    assert not waiting.is_alive()


def test_repeated_wakeups_before_the_wait_end_one_wait(bell: Bell, pair: tuple[socket.socket, socket.socket]) -> None:
    """A ring after that one would find the descriptor, which a second wait of no time reports."""
    near, far = pair
    for _ in range(3):
        bell.ring()
    assert bell.wait([], GENEROUS_S) == ([], True)
    far.send(b"x")
    assert bell.wait([near.fileno()], 0.0) == ([near.fileno()], False)


def test_a_wakeup_with_a_readable_descriptor_returns_only_the_descriptor(
    bell: Bell, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    far.send(b"x")
    bell.ring()
    assert bell.wait([near.fileno()], GENEROUS_S) == ([near.fileno()], True)


def test_wakeups_never_block_and_are_ignored_after_close() -> None:
    """More rings than the socket's buffer holds; a ring may come from a thread that does not know of the end."""
    bell = Bell()
    for _ in range(2_000):
        bell.ring()
    bell.close()
    bell.ring()


def test_each_wait_is_for_its_own_descriptors(bell: Bell, pair: tuple[socket.socket, socket.socket]) -> None:
    """Also for a new socket with the number of a closed one."""
    near, far = pair
    for one in (near, far):
        one.send(b"x")
    numbers = [near.fileno(), far.fileno()]
    assert sorted(bell.wait(numbers, GENEROUS_S).descriptors) == sorted(numbers)
    assert bell.wait([far.fileno()], GENEROUS_S) == ([far.fileno()], False)
    assert bell.wait([], 0.0) == ([], False)
    assert bell.wait([near.fileno()], GENEROUS_S) == ([near.fileno()], False)
    number = near.fileno()
    near.close()
    replacement, other = socket.socketpair()
    with replacement, other:
        assert replacement.fileno() == number
        assert bell.wait([number], 0.0) == ([], False)
        other.send(b"x")
        assert bell.wait([number], GENEROUS_S) == ([number], False)
