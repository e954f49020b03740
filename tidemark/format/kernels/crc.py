"""CRC-32 in compiled loops: ISA-L's routine (about 11 GB/s per core), called by its address.

The symbol is registered with LLVM by name, so that compiled loops that use it can be cached on disk.
"""

from __future__ import annotations

import ctypes

import isal.isal_zlib
import llvmlite.binding as llvm
from numba import types
from numba.extending import intrinsic

from tidemark.format.kernels.bounds import require_within
from tidemark.format.kernels.compiled import compiled

_SYMBOL = "tidemark_crc32_gzip_refl"
_LIBRARY = ctypes.CDLL(isal.isal_zlib.__file__)
llvm.add_symbol(_SYMBOL, ctypes.cast(_LIBRARY.crc32_gzip_refl, ctypes.c_void_p).value)

_crc32_gzip_refl = types.ExternalFunction(_SYMBOL, types.uint32(types.uint32, types.uintp, types.uint64))


@intrinsic
def address(typingctx, array):  # type: ignore[no-untyped-def]
    """Return the address of an array's first byte."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        from numba.core import cgutils

        view = cgutils.create_struct_proxy(signature.args[0])(  # type: ignore[no-untyped-call]
            context, builder, args[0]
        )
        return builder.ptrtoint(view.data, context.get_value_type(types.uintp))

    return types.uintp(array), codegen


@compiled
def masked_crc32(buffer, at, length):  # type: ignore[no-untyped-def]
    """Return the CRC-32 of buffer[at:at+length] without its highest bit; 0 if it is empty."""
    require_within(buffer, at, at + length)
    start = address(buffer) + types.uintp(at)  # type: ignore[call-arg]
    crc = _crc32_gzip_refl(types.uint32(0), start, types.uint64(length))
    return types.int32(crc & types.uint32(0x7FFFFFFF))
