"""Epochs of a log: which writer's life its bytes are from, and where two logs with a common past part.

The file has the form of RocketMQ's epochFileCheckpoint: the number of lines, the CRC-32 of the lines without its
highest bit, and a line ``epoch-start`` for each epoch.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tidemark.errors import CorruptStoreError

_CRC_MASK = 0x7FFFFFFF


class Epoch(NamedTuple):
    """An epoch, and the physical offset of its first byte."""

    number: int
    start: int


Epochs = tuple[Epoch, ...]  # numbers ascend, starts do not descend


def encode_epochs(epochs: Sequence[Epoch]) -> bytes:
    """Return the content of an epoch file."""
    lines = "".join(f"{number}-{start}\n" for number, start in epochs).encode()
    return b"%d\n%d\n%b" % (len(epochs), zlib.crc32(lines) & _CRC_MASK, lines)


def decode_epochs(data: bytes) -> Epochs:
    """Return the epochs in the content of an epoch file.

    Raises:
        CorruptStoreError: the content is damaged.
    """
    count, _, rest = data.partition(b"\n")
    checksum, _, lines = rest.partition(b"\n")
    try:
        epochs = tuple(Epoch(*map(int, line.split(b"-"))) for line in lines.splitlines())
        is_right = len(epochs) == int(count) and zlib.crc32(lines) & _CRC_MASK == int(checksum)
    except (ValueError, TypeError):
        is_right = False
    if not is_right or not are_ordered(epochs):
        raise CorruptStoreError("the epoch file is damaged: restore it from a copy of the member")
    return epochs


def are_ordered(epochs: Sequence[Epoch]) -> bool:
    """Return True if *epochs* can belong to one log."""
    has_legal_first = not epochs or (epochs[0].number > 0 and epochs[0].start >= 0)
    return has_legal_first and all(
        one.number < other.number and one.start <= other.start for one, other in pairwise(epochs)
    )


def consistent_point(ours: Sequence[Epoch], our_end: int, theirs: Sequence[Epoch], their_end: int) -> int:
    """Return the physical offset up to which two logs surely have the same bytes.

    That is the lesser end of the newest epoch that both logs have with the same start; 0 if there is none.
    """
    common = set(theirs)
    for epoch in reversed(ours):
        if epoch in common:
            return min(_end_of(epoch, ours, our_end), _end_of(epoch, theirs, their_end))
    return 0


def _end_of(epoch: Epoch, epochs: Sequence[Epoch], log_end: int) -> int:
    return next((later.start for later in epochs if later.number > epoch.number), log_end)


def cut_epochs(epochs: Sequence[Epoch], end: int) -> Epochs:
    """Return the epochs of a log that was cut to *end*: those that have bytes below it."""
    return tuple(epoch for epoch in epochs if epoch.start < end)
