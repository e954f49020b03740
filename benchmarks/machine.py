"""Describes the machine of a measurement: processor, memory, versions, and the time of an fdatasync."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from pathlib import Path

import numpy as np
import psutil

PACKAGES = ("tidemark", "grpcio", "numba", "pyarrow", "pyspark", "fastapi", "uvicorn")
_SYNCS = 200


def describe_machine(folder: Path) -> dict[str, str]:
    """Return facts by name; fdatasync is measured on *folder*'s file system."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} CPUs",
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES),
        "fdatasync of 4 KiB": _fdatasync(folder),
        "load average before": load_average(),
    }


def load_average() -> str:
    """Return the load average of the last minute, which shows other work of the machine."""
    return f"{os.getloadavg()[0]:.2f}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _fdatasync(folder: Path) -> str:
    path = folder / "fdatasync"
    times = []
    with path.open("wb", buffering=0) as file:
        file.truncate(4096 * _SYNCS)
        for _ in range(_SYNCS):
            file.write(bytes(4096))
            before = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - before) * 1000)
    path.unlink()
    return f"p50 {np.percentile(times, 50):.3f} ms, p99 {np.percentile(times, 99):.3f} ms"
