"""Finding the properties that the store itself reads, in compiled loops (spec 2.4).

Twin: `tidemark.format.properties`.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.integers import get_u4
from tidemark.format.kernels.search import find_byte

# Rows of the table that `scan_properties` fills: where each value stands.
TAGS, KEYS, UNIQ_KEY, INNER_NUM, INNER_BASE, DELAY, TIMER, MULTI_DISPATCH, MULTI_OFFSETS, PROPERTY_CRC = range(10)
N_NAMES = 10

NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR = 1, 2


def _word(text: str) -> np.uint32:
    return np.uint32(int.from_bytes(text.encode()[:4], "big"))


_TAGS, _KEYS, _UNIQ, _KEY = _word("TAGS"), _word("KEYS"), _word("UNIQ"), _word("_KEY")
_INNE, _R_NU, _R_BA = _word("INNE"), _word("R_NU"), _word("R_BA")
_DELA, _TIME, _R_DE, _LAY_, _LIVE = _word("DELA"), _word("TIME"), _word("R_DE"), _word("LAY_"), _word("LIVE")
_R_MU, _LTI_, _DISP, _ATCH = _word("R_MU"), _word("LTI_"), _word("DISP"), _word("ATCH")
_QUEU, _E_OF, _FSET = _word("QUEU"), _word("E_OF"), _word("FSET")
___CR, _C32 = _word("__CR"), _word("C32#")


@compiled
def _is_time_unit(buffer, at, length):  # type: ignore[no-untyped-def]
    """Whether SEC or MS stands at buffer[at:at+length]."""
    if length == 3:
        return buffer[at] == 83 and buffer[at + 1] == 69 and buffer[at + 2] == 67
    return length == 2 and buffer[at] == 77 and buffer[at + 1] == 83


@compiled
def _name_of(buffer, at, length):  # type: ignore[no-untyped-def]
    """Which of the names above stands at buffer[at:at+length]; -1 for any other."""
    if length < 4:
        return -1
    word = get_u4(buffer, at)
    if length == 4:
        if word == _TAGS:
            return TAGS
        if word == _KEYS:
            return KEYS
        return -1
    if length == 5:
        return DELAY if word == _DELA and buffer[at + 4] == 89 else -1
    if length < 8:
        return -1
    second = get_u4(buffer, at + 4)
    if word == ___CR:
        return PROPERTY_CRC if length == 8 and second == _C32 else -1
    if word == _UNIQ:
        return UNIQ_KEY if length == 8 and second == _KEY else -1
    if word == _INNE:
        if length == 9 and second == _R_NU and buffer[at + 8] == 77:
            return INNER_NUM
        if length == 10 and second == _R_BA and buffer[at + 8] == 83 and buffer[at + 9] == 69:
            return INNER_BASE
        if length == 20 and second == _R_MU and get_u4(buffer, at + 8) == _LTI_:
            if get_u4(buffer, at + 12) == _DISP and get_u4(buffer, at + 16) == _ATCH:
                return MULTI_DISPATCH
        if length == 24 and second == _R_MU and get_u4(buffer, at + 8) == _LTI_ and get_u4(buffer, at + 12) == _QUEU:
            if get_u4(buffer, at + 16) == _E_OF and get_u4(buffer, at + 20) == _FSET:
                return MULTI_OFFSETS
        return -1
    if word == _TIME and second == _R_DE and length >= 14:
        third = get_u4(buffer, at + 8)
        if third == _LAY_ and _is_time_unit(buffer, at + 12, length - 12):
            return TIMER  # TIMER_DELAY_SEC, TIMER_DELAY_MS
        if third == _LIVE and length == 16 and buffer[at + 12] == 82 and buffer[at + 13] == 95:
            return TIMER if buffer[at + 14] == 77 and buffer[at + 15] == 83 else -1  # TIMER_DELIVER_MS
    return -1


@compiled
def scan_properties(buffer, at, end, found):  # type: ignore[no-untyped-def]
    """Fill *found*: position and length of each value, 0 and 0 when absent. The last duplicate wins.

    found  int64, shape (N_NAMES, 2)
    """
    found[:, :] = 0
    position = at
    while position < end:
        segment_end = find_byte(buffer, PROPERTY_SEPARATOR, position, end)
        name_end = find_byte(buffer, NAME_VALUE_SEPARATOR, position, segment_end)
        if position < name_end < segment_end - 1:
            name = _name_of(buffer, position, name_end - position)
            if name >= 0:
                found[name, 0] = name_end + 1
                found[name, 1] = segment_end - name_end - 1
        position = segment_end + 1
