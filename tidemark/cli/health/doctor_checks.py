"""Local checks of `doctor`, one function each. None raises for a fault or leaves files behind."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tidemark.cli.health.doctor_group import group_check
from tidemark.cli.health.doctor_services import ask_health, clock_check, query_check, writer_check
from tidemark.cli.health.finding import DoctorFinding, Level
from tidemark.errors import StoreContradictionError
from tidemark.local.java import REMEDY, java_command, require_java
from tidemark.version import program_version

_LEAST_PYTHON = (3, 11)
_PACKAGES = (  # row, extra, packages
    ("client", "client", ("grpcio", "protobuf", "httptools", "orjson", "pydantic")),
    ("tables", "table", ("numpy", "isal", "pyarrow")),
    ("services", "all", ("pyspark", "fastapi", "uvicorn", "structlog")),
)
_LEAST_FREE_BYTES = 32 << 20  # the default of the writer's min_free_disk_bytes: below it, the writer refuses appends
_LITTLE_FREE_BYTES = 2 << 30  # two of RocketMQ's segments
_SYNCS, _SYNC_BYTES = 25, 4096
_SLOW_SYNC_MS = 20.0
_LITTLE_MEMORY_BYTES = 1 << 30  # for the three services, Spark's driver at its default, and a margin


def all_checks(data: Path, writer: str | None, query: str | None) -> Iterator[DoctorFinding]:
    """Yield every check. data: directory of a store, existing or planned; writer, query: addresses, None: defaults."""
    yield python_check()
    yield java_check()
    yield from package_checks()
    if _version("grpcio") is not None:
        yield writer_check(writer)
        if (group := group_check(writer)) is not None:
            yield group
    url, heard = ask_health(query)
    yield query_check(url, heard)
    yield clock_check(heard)
    folder = nearest_folder(data)
    yield disk_check(folder)
    yield sync_check(folder)
    yield memory_check()


def python_check() -> DoctorFinding:
    """Check Python's version."""
    text = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info >= _LEAST_PYTHON:
        return DoctorFinding(Level.OK, "python", text)
    return DoctorFinding(Level.FAIL, "python", text, "install Python 3.11 or later")


def java_check() -> DoctorFinding:
    """Check the Java that Spark would start; a client needs none."""
    level = Level.WARN if _version("pyspark") is None else Level.FAIL
    try:
        version = require_java()
    except StoreContradictionError as error:
        return DoctorFinding(level, "java", error.message.removesuffix(f"; {REMEDY}"), REMEDY)
    return DoctorFinding(Level.OK, "java", f"{version} ({shutil.which(java_command())})")


def package_checks() -> Iterator[DoctorFinding]:
    """Check the versions of installed packages, and report missing ones."""
    yield DoctorFinding(Level.OK, "tidemark", program_version())
    for name, extra, packages in _PACKAGES:
        versions = {package: _version(package) for package in packages}
        text = ", ".join(f"{package} {version}" for package, version in versions.items() if version)
        missing = [package for package, version in versions.items() if version is None]
        if not missing:
            yield DoctorFinding(Level.OK, name, text)
            continue
        level, note = (Level.FAIL, "") if name == "client" else (Level.WARN, "; a client does not need them")
        yield DoctorFinding(
            level, name, f"not installed: {', '.join(missing)}{note}", f"pip install 'tidemark[{extra}]' installs them"
        )
    if _version("isal") is not None and _version("numpy") is not None:
        yield loops_check()


def loops_check() -> DoctorFinding:
    """Check where the machine code of the loops comes from."""
    try:
        from tidemark.format.kernels.compiled import extension
    except ModuleNotFoundError as error:
        return DoctorFinding(Level.FAIL, "loops", str(error), "pip install numba")
    if extension is not None:
        return DoctorFinding(Level.OK, "loops", f"compiled in this installation ({extension.__file__})")
    return DoctorFinding(Level.OK, "loops", f"compiled by numba {_version('numba')} at their first use")


def nearest_folder(data: Path) -> Path:
    """Return *data*, or its nearest existing parent folder."""
    return next(folder for folder in (data.absolute(), *data.absolute().parents) if folder.is_dir())


def disk_check(folder: Path) -> DoctorFinding:
    """Check the free space at the store."""
    usage = shutil.disk_usage(folder)
    text = f"{usage.free / 1e9:,.1f} GB free of {usage.total / 1e9:,.1f} GB at {folder}"
    if usage.free < _LEAST_FREE_BYTES:
        return DoctorFinding(Level.FAIL, "disk", text, "free some space: the writer refuses appends")
    if usage.free < _LITTLE_FREE_BYTES:
        return DoctorFinding(Level.WARN, "disk", text, "little space: set TIDEMARK_RETENTION_HOURS, or free some space")
    return DoctorFinding(Level.OK, "disk", text)


def sync_check(folder: Path) -> DoctorFinding:
    """Measure fdatasync at the store: an append in flush mode `sync` waits for one."""
    try:
        times_ms = sync_times_ms(folder)
    except OSError as error:
        return DoctorFinding(Level.FAIL, "fdatasync", f"{folder}: {error}", "choose another folder with --data")
    median, longest = statistics.median(times_ms), max(times_ms)
    text = f"median {median:.2f} ms, at most {longest:.2f} ms, of {_SYNCS} at {folder}"
    if median > _SLOW_SYNC_MS:
        step = "every append in flush mode `sync` waits this long: use a faster disk, or send batches"
        return DoctorFinding(Level.WARN, "fdatasync", text, step)
    return DoctorFinding(Level.OK, "fdatasync", text)


def sync_times_ms(folder: Path) -> list[float]:
    """Return the times of fdatasync after writes of 4 KiB to an unnamed file."""
    times_ms = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for number in range(_SYNCS):
            os.pwrite(file.fileno(), b"\1" * _SYNC_BYTES, number * _SYNC_BYTES)
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times_ms.append((time.perf_counter() - begin) * 1000)
    return times_ms


def memory_check() -> DoctorFinding:
    """Check the available memory."""
    told = Path("/proc/meminfo").read_text() if Path("/proc/meminfo").exists() else ""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", told, re.MULTILINE)
    if found is None:
        return DoctorFinding(
            Level.WARN, "memory", "unknown: /proc/meminfo has no MemAvailable", "Tidemark runs on Linux"
        )
    available = int(found[1]) * 1024
    text = f"{available / 1e9:,.1f} GB available"
    if available < _LITTLE_MEMORY_BYTES:
        return DoctorFinding(Level.WARN, "memory", text, "little memory for three services, one of which runs Spark")
    return DoctorFinding(Level.OK, "memory", text)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
