"""What the stack costs when nothing happens: memory of each process, CPU over 30 s, disk of a new `serve` store."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from benchmarks.append_to_visible import RATE, measure
from benchmarks.report import Row
from tidemark.cli.local_stack import PIPELINE, QUERY, WRITER, LocalStack

IDLE_S = 30.0
_SETTLE_S = 5.0


def run(folder: Path, scale: float) -> list[Row]:
    """A new store, some traffic, then silence."""
    data = folder / "resident"
    with LocalStack(data) as stack:
        measure(stack.writer_address, stack.query_url, count=int(RATE * 5), rate=RATE)
        disk = Row("disk of a new serve store", _allocated(data) / 1e6, "MB", "< 100", "st_blocks, 1 MB of messages")
        time.sleep(_SETTLE_S)
        processes = {name: _tree(stack.services[name].pid) for name in (WRITER, PIPELINE, QUERY)}
        everything = [process for tree in processes.values() for process in tree]
        cpu = _cpu_share(everything, max(5.0, IDLE_S * scale))
        return [disk, *_memory_rows(processes), Row("idle CPU of the stack", cpu, "% of a core", "< 5")]


def _tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def _cpu_share(processes: list[psutil.Process], seconds: float) -> float:
    before = [_cpu_s(process) for process in processes]
    time.sleep(seconds)
    used = sum(max(0.0, _cpu_s(process) - then) for process, then in zip(processes, before, strict=True))
    return used / seconds * 100


def _cpu_s(process: psutil.Process) -> float:
    """Seconds it and its ended children have used; 0 when it is gone itself."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def _memory_rows(processes: dict[str, list[psutil.Process]]) -> list[Row]:
    rows = []
    total_pss = 0.0
    for service, tree in processes.items():
        groups: dict[str, list[psutil.Process]] = {}
        for process in tree:
            name = service if process is tree[0] else f"{service}: {_kind(process)}"
            groups.setdefault(name, []).append(process)
        for name, members in groups.items():
            resident = max(resident_bytes(process.pid) for process in members)
            pss = sum(process.memory_full_info().pss for process in members)
            total_pss += pss
            target = "< 300" if name in {WRITER, QUERY} else ""
            note = f"Pss {pss / 1e6:.0f} MB" + (
                f" of {len(members)} together; the greatest one" if len(members) > 1 else ""
            )
            rows.append(Row(f"resident, {name}", resident / 1e6, "MB", target, note))
    rows.append(Row("resident, the whole stack", total_pss / 1e6, "MB", "< 2000", "sum of Pss"))
    return rows


def _kind(process: psutil.Process) -> str:
    return "JVM" if process.name() == "java" else "Python workers"


def resident_bytes(pid: int) -> int:
    """RssAnon + RssShmem, bytes: without the pages of mapped files, which the system may take back."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return sum(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))


def _allocated(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
