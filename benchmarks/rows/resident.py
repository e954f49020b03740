"""The cost of an idle stack: memory of each process, CPU over 30 s, disk space of a new `serve` store."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from benchmarks.append_to_visible import measure
from benchmarks.benchmark import Benchmark
from benchmarks.processes import DRIVER, JVM, WORKER, cpu_s, resident_bytes, roles_of
from benchmarks.report import Result, Row
from benchmarks.stores import passing_store
from tidemark.local.local_stack import PIPELINE, QUERY, WRITER, LocalStack

IDLE_S = 30.0
_SETTLE_S = 5.0
_RATE = 200.0
_KEYS = {WRITER: "writer", PIPELINE: "pipeline", DRIVER: "driver", JVM: "jvm", WORKER: "worker", QUERY: "query"}
_TARGETS = {WRITER: "< 250", QUERY: "< 250"}


def _measure(folder: Path, scale: float) -> Result:
    with (
        passing_store(folder / "resident") as data,
        LocalStack(data) as stack,
    ):  # with the file sizes of `tidemark serve`
        stack.wait_for_spark()
        measure(stack.writer_address, stack.query_url, count=int(_RATE * 5), rate=_RATE)
        disk = sum(path.stat().st_blocks * 512 for path in data.rglob("*") if path.is_file())
        time.sleep(_SETTLE_S)
        roles = roles_of(stack)
        rows = [Row("resident_disk_mb", "disk of a new serve store", disk / 1e6, "MB", "< 100", "1 MB of messages")]
        rows += _memory_rows(roles)
        cpu = _cpu_share([process for processes in roles.values() for process in processes], max(5.0, IDLE_S * scale))
        stack.check()
    rows.append(Row("resident_cpu_percent", "idle CPU of the stack", cpu, "% of a core", "< 5"))
    return Result(rows, [])


def _memory_rows(roles: dict[str, list[psutil.Process]]) -> list[Row]:
    rows = []
    total_pss = 0.0
    for role, key in _KEYS.items():
        processes = roles[role]
        pss = sum(process.memory_full_info().pss for process in processes)
        total_pss += pss
        note = f"Pss {pss / 1e6:.0f} MB" + (f" of {len(processes)}; the greatest one" if len(processes) > 1 else "")
        resident = max(resident_bytes(process.pid) for process in processes)
        rows.append(Row(f"resident_{key}_mb", f"resident, {role}", resident / 1e6, "MB", _TARGETS.get(role, ""), note))
    rows.append(Row("resident_stack_mb", "resident, the whole stack", total_pss / 1e6, "MB", "< 2000", "sum of Pss"))
    return rows


def _cpu_share(processes: list[psutil.Process], seconds: float) -> float:
    before = [cpu_s(process) for process in processes]
    time.sleep(seconds)
    used = sum(max(0.0, cpu_s(process) - then) for process, then in zip(processes, before, strict=True))
    return used / seconds * 100


BENCHMARKS = (
    Benchmark(
        "resident",
        (
            "resident_disk_mb",
            *(f"resident_{key}_mb" for key in _KEYS.values()),
            "resident_stack_mb",
            "resident_cpu_percent",
        ),
        _measure,
        "sync",
    ),
)
