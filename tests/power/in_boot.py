"""Run a service in a boot of its own: `python -m tests.power.in_boot BOOT_ID_FILE MODULE …`.

A power cut is followed by a boot, and the services distinguish boots by the kernel's boot id. A mount namespace of this
process and its children shows them the id in BOOT_ID_FILE instead.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import sys

_BOOT_ID = b"/proc/sys/kernel/random/boot_id"
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x00020000, 4096, 16384, 1 << 18


def main() -> None:
    """Hide the kernel's boot id, then take MODULE's place."""
    libc = ctypes.CDLL(None, use_errno=True)
    del sys.argv[0]
    boot_id = os.fsencode(sys.argv.pop(0))
    _require(libc.unshare(_CLONE_NEWNS))
    _require(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    _require(libc.mount(boot_id, _BOOT_ID, None, _MS_BIND, None))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _require(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main()
