"""Which of the members' copies of some bytes is the right one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tidemark.format.check import Checker, Crc
from tidemark.format.dispatch_request import Outcome


class Place(NamedTuple):
    """The bytes [begin, end) of the log, as part of a longer stretch that begins with a record at *base*.

    file_end: end of the file that has all of them
    """

    base: int
    begin: int
    end: int
    file_end: int

    def of(self, stretch: bytes) -> bytes:
        """Return these bytes of *stretch*."""
        return stretch[self.begin - self.base : self.end - self.base]


def is_sound(stretch: bytes, place: Place) -> bool:
    """Return True if all records of *stretch* that begin before the place's end pass their checks."""
    buffer = np.frombuffer(stretch, np.uint8)
    result = Checker(crc=Crc.STOPS, max_rows=len(stretch)).check(
        buffer, base_offset=place.base, file_end=place.file_end - place.base
    )
    return result.outcome is Outcome.BLANK or result.end_at >= place.end - place.base


def sound_copy(ours: bytes, copies: Mapping[str, bytes], place: Place) -> str | None:
    """Return the name of a member whose copy of *place* must replace ours; None if ours stays.

    Ours is replaced if it fails the checks and a copy passes them. No check covers a record's properties, so that ours
    may also be wrong although it passes: then two members must have the same other bytes, and fewer must have ours.
    Where the members contradict each other, nothing is replaced.

    Args:
        ours, copies: stretches from the place's base on, long enough for the last record that begins in it.
    """
    own = place.of(ours)
    votes = Counter({own: 1})
    sound: dict[bytes, str] = {}
    for name, stretch in copies.items():
        data = place.of(stretch)
        if data == own:
            votes[own] += 1
        elif len(data) == len(own) and is_sound(stretch, place):
            votes[data] += 1
            sound.setdefault(data, name)
    if not sound:
        return None
    best, most = max(((data, votes[data]) for data in sound), key=lambda one: one[1])
    if sum(votes[data] == most for data in sound) > 1:
        return None
    if is_sound(ours, place) and not most > max(1, votes[own]):
        return None
    return sound[best]
