"""Builds `_tidemark_loops`, the compiled loops without numba: `python -m scripts.extension FOLDER`.

Needs numba, setuptools, compilers of C and C++ (numba asks for both), and Python's headers. The code is that of the
loops' sources, compiled by `numba.pycc` with the types of `scripts.warm`, for any processor of this architecture.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAME = "_tidemark_loops"
_NAMED_PROCESSOR = "generic"


def loops_with_types() -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return the types of the arguments of each loop that Python calls, by module and name, after calling each."""
    from scripts.warm import warm_all
    from tidemark.format.kernels import compiled

    if compiled.extension is not None:
        raise RuntimeError(f"numba must compile the loops here: take {compiled.extension.__file__} off PYTHONPATH")
    dispatcher = _numba("core.dispatcher").Dispatcher
    found: dict[tuple[str, str], tuple[Any, ...]] = {}

    def compile_for_args(loop: Any, *args: Any) -> Any:
        key, types = (loop.py_func.__module__, loop.py_func.__name__), tuple(map(loop.typeof_pyval, args))
        found[key] = tuple(map(_weaker, types, found.get(key, types)))
        return original(loop, *args)

    original, dispatcher._compile_for_args = dispatcher._compile_for_args, compile_for_args
    warm_all()
    return dict(sorted(found.items()))


def _weaker(one: Any, other: Any) -> Any:
    """Return the type to which values of both types can be given: arrays that only the loop's reading needs."""
    if one == other:
        return one
    assert one.copy(readonly=True) == other.copy(readonly=True), (one, other)
    return one.copy(readonly=True)


def build(folder: Path) -> Path:
    """Write the extension to *folder*; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    with _in_new_process() as pool:
        loops = pool.apply(loops_with_types)
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= {"NUMBA_CPU_NAME": _NAMED_PROCESSOR, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": cache}
        with _in_new_process() as pool:
            return folder / str(pool.apply(_compile, (folder, loops)))


@contextlib.contextmanager
def _in_new_process() -> Iterator[Any]:
    """Numba takes its settings when it is imported, and code from its cache cannot be linked."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool


def _compile(folder: Path, loops: dict[tuple[str, str], tuple[Any, ...]]) -> str:
    """Write the extension to *folder*; return its file's name."""
    from tidemark.format.kernels import compiled

    warnings.simplefilter("ignore", _numba("core.errors").NumbaPendingDeprecationWarning)
    compiled.machine.crc_is_in_a_variable = True
    extension = _numba("pycc.cc").CC(NAME)
    extension.output_dir = str(folder)
    extension.use_nrt = compiled.WITH_NUMBAS_RUNTIME
    sources, use_crc32 = compiled._SOURCES, compiled.machine.use_crc32
    extension.export("sources", "int64()")(lambda: sources)
    extension.export("use_crc32", "void(intp)")(lambda address: use_crc32(address))  # noqa: PLW0108 - an intrinsic
    for (module, name), types in loops.items():
        function = getattr(importlib.import_module(module), name).py_func
        extension.export(compiled.name_in_extension(function), types)(function)
    _release_the_gil()
    _find_exception_classes()
    _refuse_arrays_with_gaps()
    extension.compile()
    return str(extension.output_file)


def _release_the_gil() -> None:
    """Let the exported loops run without the GIL, as those that numba compiles for `compiled` do."""
    pycc = _numba("pycc.compiler")

    def flags() -> Any:
        made = original()
        made.release_gil = True
        return made

    original, pycc.Flags = pycc.Flags, flags


def _find_exception_classes() -> None:
    """Read Python's exceptions from their C variables; numba's own code takes the variable's address for the class."""
    python_api = _numba("core.pythonapi").PythonAPI

    def get_c_object(api: Any, name: str) -> Any:
        if not name.startswith("PyExc_"):
            return original(api, name)
        return api.builder.load(api.context.get_c_value(api.builder, api.pyobj, name, dllimport=True))

    original, python_api.get_c_object = python_api.get_c_object, get_c_object


def _refuse_arrays_with_gaps() -> None:
    """Let the exported loops check that an array is contiguous: they would take the bytes of a gap for its own."""
    cgutils, pythonapi = _numba("core.cgutils"), _numba("core.pythonapi")
    unbox = _numba("core.boxing").unbox_array

    def unbox_contiguous(of_type: Any, given: Any, context: Any) -> Any:
        value = unbox(of_type, given, context)
        builder = context.builder
        array = context.context.make_array(of_type)(context.context, builder, value.value)
        lengths, steps = cgutils.unpack_tuple(builder, array.shape), cgutils.unpack_tuple(builder, array.strides)
        is_filled = builder.icmp_signed(">", array.nitems, array.nitems.type(0))
        is_error, right_step = value.is_error, array.itemsize
        for length, step in reversed(list(zip(lengths, steps, strict=True))):
            is_long = builder.and_(is_filled, builder.icmp_signed(">", length, length.type(1)))
            has_gap = builder.and_(is_long, builder.icmp_signed("!=", step, right_step))
            with builder.if_then(builder.and_(has_gap, builder.not_(is_error)), likely=False):
                context.pyapi.err_set_string("PyExc_TypeError", "the compiled loops take contiguous arrays only")
            is_error = builder.or_(is_error, has_gap)
            right_step = builder.mul(right_step, length)
        return pythonapi.NativeValue(value.value, is_error=is_error, cleanup=value.cleanup)

    pythonapi._unboxers.functions[_numba("core.types").Array] = unbox_contiguous


def _numba(module: str) -> Any:
    """Return a module of numba, whose compiler has no complete types."""
    return importlib.import_module(f"numba.{module}")


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
