"""Many reads of one file in one compiled loop, without the interpreter between them.

After a large copy the interpreter's own code and data are out of the cache: between forty reads it costs half as much
as they do.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numba import types
from numpy.typing import NDArray

from tidemark.format.dispatch_request import U8Array
from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.crc import address

_pread = types.ExternalFunction("pread", types.intp(types.int32, types.uintp, types.uintp, types.int64))


@compiled
def _read_runs(descriptor, starts, lengths, buffer, places):  # type: ignore[no-untyped-def]
    base = address(buffer)  # type: ignore[call-arg,var-annotated]
    for i in range(starts.size):
        at, left, to = starts[i], lengths[i], base + types.uintp(places[i])
        while left > 0:
            got = _pread(types.int32(descriptor), to, types.uintp(left), at)
            if got <= 0:
                return i
            at += got
            left -= got
            to += types.uintp(got)
    return starts.size


def read_runs(
    descriptor: int,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    buffer: U8Array,
    places: NDArray[np.int64],
) -> int:
    """Read the file's bytes [starts[i], + lengths[i]) to buffer[places[i]:], one run after the other.

    returns  how many runs were read whole: the next one ends too early, or its read failed (a plain read tells why)
    raises   ValueError for a run that the buffer has no room for
    """
    if len(starts) and int((places + lengths).max()) > len(buffer):
        raise ValueError("a run is longer than its place")
    return cast(int, _read_runs(descriptor, starts, lengths, buffer, places))
