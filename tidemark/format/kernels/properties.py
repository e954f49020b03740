"""Search for the properties that the store itself reads, in compiled loops (docs/format.md §2).

Twin: `tidemark.format.properties`.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.integers import get_u4
from tidemark.format.kernels.search import find_byte

# Rows of the table that `scan_properties` fills with the position and length of each value.
TAGS, KEYS, UNIQ_KEY, INNER_NUM, INNER_BASE, DELAY, TIMER, MULTI_DISPATCH, MULTI_OFFSETS, PROPERTY_CRC = range(10)
TRANSACTION, WAIT = 10, 11
N_NAMES = 12

NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR = 1, 2


def _word(text: str) -> np.uint32:
    return np.uint32(int.from_bytes(text.encode()[:4], "big"))


_TAGS, _KEYS, _UNIQ, _KEY = _word("TAGS"), _word("KEYS"), _word("UNIQ"), _word("_KEY")
_INNE, _R_NU, _R_BA = _word("INNE"), _word("R_NU"), _word("R_BA")
_DELA, _TIME, _WAIT = _word("DELA"), _word("TIME"), _word("WAIT")
_TRAN, __MSG = _word("TRAN"), _word("_MSG")
___ST, _ARTD, _ELIV, _ERTI = _word("__ST"), _word("ARTD"), _word("ELIV"), _word("ERTI")
_R_MU, _LTI_, _DISP, _ATCH = _word("R_MU"), _word("LTI_"), _word("DISP"), _word("ATCH")
_QUEU, _E_OF, _FSET = _word("QUEU"), _word("E_OF"), _word("FSET")
___CR, _C32 = _word("__CR"), _word("C32#")
_TRUE = _word("true")


@compiled
def is_java_true(buffer, at, length):  # type: ignore[no-untyped-def]
    """Return True if Java's Boolean.parseBoolean reads buffer[at:at+length] as true: the word in any case."""
    return length == 4 and get_u4(buffer, at) | np.uint32(0x20202020) == _TRUE


@compiled
def _is_start_deliver_time(buffer, at, length):  # type: ignore[no-untyped-def]
    """Return True if the name is __STARTDELIVERTIME; its first four bytes are known to be __ST."""
    if length != 18 or get_u4(buffer, at + 4) != _ARTD or get_u4(buffer, at + 8) != _ELIV:
        return False
    return get_u4(buffer, at + 12) == _ERTI and buffer[at + 16] == 77 and buffer[at + 17] == 69


@compiled
def _name_of(buffer, at, length):  # type: ignore[no-untyped-def]
    """Return the row of the name at buffer[at:at+length]; -1 for any other name."""
    if length < 4:
        return -1
    word = get_u4(buffer, at)
    if length == 4:
        if word == _TAGS:
            return TAGS
        if word == _KEYS:
            return KEYS
        return WAIT if word == _WAIT else -1
    if length == 5:
        return DELAY if word == _DELA and buffer[at + 4] == 89 else -1
    if word == _TIME:  # every name that begins with TIMER_
        return TIMER if length > 5 and buffer[at + 4] == 82 and buffer[at + 5] == 95 else -1
    if length < 8:
        return -1
    second = get_u4(buffer, at + 4)
    if word == _TRAN:
        return TRANSACTION if length == 8 and second == __MSG else -1
    if word == ___ST:
        return TIMER if _is_start_deliver_time(buffer, at, length) else -1
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
    return -1


@compiled(inline="always")
def scan_properties(buffer, at, end, found):  # type: ignore[no-untyped-def]
    """Fill *found* with position and length of each value, 0 and 0 if absent. Of duplicates the last one counts.

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
