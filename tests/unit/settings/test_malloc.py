"""Threads share arenas, as glibc itself reports."""

from __future__ import annotations

import os
import subprocess
import sys

_PROGRAM = """
import ctypes, re, sys, tempfile, threading
from tidemark.settings.malloc import limit_malloc

if sys.argv[1] == "limited":
    limit_malloc()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
libc.free.argtypes = libc.fclose.argtypes = [ctypes.c_void_p]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
together = threading.Barrier(8)

def allocate():
    libc.free(libc.malloc(1000))
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(together.parties)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with tempfile.NamedTemporaryFile() as file:
    stream = libc.fopen(file.name.encode(), b"w")
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(len(re.findall(rb"<heap nr", file.read())))
"""


def test_threads_share_arenas() -> None:
    assert _arenas("limited") <= 2 < _arenas("left alone")


def _arenas(how: str) -> int:
    unsettled = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM, how], capture_output=True, text=True, check=True, timeout=60, env=unsettled
    )
    return int(run.stdout)
