"""What loops need and Python does not have: unaligned big-endian integers, libc's memchr and memmove, ISA-L's CRC-32,
and reads of cached bytes of a file.

Each is an intrinsic of numba: LLVM instructions instead of a Python function. *array* is an array of uint8, *at* and
*length* are signed, nothing is checked. `compiled.machine` is this module, or None where numba is not needed.
"""

from __future__ import annotations

import sys
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from tidemark.format.kernels.crc_address import crc32_address

BOUNDS_ARE_CHECKED = bool(config.BOUNDSCHECK)  # type: ignore[attr-defined]  # NUMBA_BOUNDSCHECK=1

_BYTE, _SIZE, _POINTER = ir.IntType(8), ir.IntType(64), ir.IntType(8).as_pointer()
_CRC_SYMBOL = "tidemark_crc32"
_CRC_TYPE = ir.FunctionType(ir.IntType(32), [ir.IntType(32), _POINTER, _SIZE])
_NO_WAIT = 8 if sys.platform == "linux" else None  # RWF_NOWAIT
crc_is_in_a_variable = False  # the extension is loaded without LLVM's table of symbols


llvm.add_symbol(_CRC_SYMBOL, crc32_address())  # by name, so that compiled loops can be cached on disk


def _place(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    """Return a pointer to byte *at* of an array."""
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.gep_inbounds(builder, view.data, at)  # type: ignore[no-untyped-call]


def _loader(bits: int) -> Any:
    result = types.Integer.from_bitwidth(bits, signed=False)

    def load(typingctx, array, at):  # type: ignore[no-untyped-def]
        """Return the unsigned big-endian integer at byte *at* by one load and a byte swap.

        Eight single-byte loads would each test whether *at* is negative.
        """

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            place = _place(context, builder, signature.args[0], args[0], args[1])
            return builder.bswap(builder.load(builder.bitcast(place, ir.IntType(bits).as_pointer()), align=1))

        return result(array, types.intp), codegen

    return intrinsic(load)


def _storer(bits: int) -> Any:
    value_type = types.Integer.from_bitwidth(bits, signed=False)

    def store(typingctx, array, at, value):  # type: ignore[no-untyped-def]
        """Write the lowest bits of *value* big-endian at byte *at*."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            place = _place(context, builder, signature.args[0], args[0], args[1])
            builder.store(builder.bswap(args[2]), builder.bitcast(place, ir.IntType(bits).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.none(array, types.intp, value_type), codegen

    return intrinsic(store)


load_2, load_4, load_8 = _loader(16), _loader(32), _loader(64)
store_2, store_4, store_8 = _storer(16), _storer(32), _storer(64)


@intrinsic
def crc32(typingctx, array, at, length):  # type: ignore[no-untyped-def]
    """Return the CRC-32 of array[at : at + length], all 32 bits."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature.args[0], args[0], args[1])
        return builder.call(_crc_function(builder), [ir.Constant(ir.IntType(32), 0), place, args[2]])

    return types.uint32(array, types.intp, types.intp), codegen


@intrinsic
def use_crc32(typingctx, address):  # type: ignore[no-untyped-def]
    """Put the routine's address into the extension's variable."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        builder.store(builder.inttoptr(args[0], _CRC_TYPE.as_pointer()), _crc_variable(builder.module))
        return context.get_dummy_value()

    return types.none(types.intp), codegen


def _crc_function(builder: Any) -> Any:
    if crc_is_in_a_variable:
        return builder.load(_crc_variable(builder.module))
    return cgutils.get_or_insert_function(builder.module, _CRC_TYPE, _CRC_SYMBOL)  # type: ignore[no-untyped-call]


def _crc_variable(module: Any) -> Any:
    """Return the variable, one for all modules that are linked together."""
    if _CRC_SYMBOL in module.globals:
        return module.globals[_CRC_SYMBOL]
    variable = ir.GlobalVariable(module, _CRC_TYPE.as_pointer(), _CRC_SYMBOL)
    variable.initializer = ir.Constant(variable.value_type, None)
    variable.linkage = "linkonce_odr"
    return variable


@intrinsic
def find(typingctx, array, byte, at, length):  # type: ignore[no-untyped-def]
    """Return the position of the first *byte* in array[at : at + length], by memchr; -1 if it does not occur."""
    memchr = ir.FunctionType(_POINTER, [_POINTER, ir.IntType(32), _SIZE])

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        view = context.make_array(signature.args[0])(context, builder, args[0])
        place = cgutils.gep_inbounds(builder, view.data, args[2])  # type: ignore[no-untyped-call]
        function = cgutils.get_or_insert_function(builder.module, memchr, "memchr")  # type: ignore[no-untyped-call]
        found = builder.call(function, [place, args[1], args[3]])
        position = builder.sub(builder.ptrtoint(found, _SIZE), builder.ptrtoint(view.data, _SIZE))
        return builder.select(cgutils.is_null(builder, found), ir.Constant(_SIZE, -1), position)  # type: ignore[no-untyped-call]

    return types.intp(array, types.int32, types.intp, types.intp), codegen


@intrinsic
def copy(typingctx, source, at, length, target, to):  # type: ignore[no-untyped-def]
    """Copy source[at : at + length] to target[to : to + length] by memmove, so they may overlap."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        begin = _place(context, builder, signature.args[0], args[0], args[1])
        end = _place(context, builder, signature.args[3], args[3], args[4])
        cgutils.raw_memmove(builder, end, begin, args[2], itemsize=1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.none(source, types.intp, types.intp, target, types.intp), codegen


@intrinsic
def read_cached(typingctx, descriptor, array, length, offset):  # type: ignore[no-untyped-def]
    """Read *length* bytes at *offset* of a file to the start of *array*, without waiting for a disk (RWF_NOWAIT).

    Returns the number of bytes read; negative if they are not in the page cache, or if the system cannot do that.
    """
    vector = ir.LiteralStructType([_POINTER, _SIZE])  # struct iovec
    integer = ir.IntType(32)
    preadv2 = ir.FunctionType(_SIZE, [integer, vector.as_pointer(), integer, _SIZE, integer])

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        if _NO_WAIT is None:
            return ir.Constant(_SIZE, -1)
        place = cgutils.alloca_once(builder, vector)  # type: ignore[no-untyped-call]
        data = context.make_array(signature.args[1])(context, builder, args[1]).data
        builder.store(data, cgutils.gep_inbounds(builder, place, 0, 0))  # type: ignore[no-untyped-call]
        builder.store(args[2], cgutils.gep_inbounds(builder, place, 0, 1))  # type: ignore[no-untyped-call]
        function = cgutils.get_or_insert_function(builder.module, preadv2, "preadv2")  # type: ignore[no-untyped-call]
        return builder.call(function, [args[0], place, integer(1), args[3], integer(_NO_WAIT)])

    return types.intp(types.int32, array, types.intp, types.intp), codegen
