"""`python -m benchmarks [append] [visible] [drain] [resident] [flat]`: print a table, write benchmarks/results/*.json.

BENCH_SCALE (default 1) shortens or lengthens; BENCH_FOLDER says on which file system (default: this folder's).
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from benchmarks import append, append_to_visible, drain, flat, resident
from benchmarks.machine import describe_machine, load_average
from benchmarks.report import Row

BENCHMARKS: dict[str, Callable[[Path, float], list[Row]]] = {
    "append": append.run,
    "visible": append_to_visible.run,
    "drain": drain.run,
    "resident": resident.run,
    "flat": flat.run,
}
_WHEN_NAMED = ("flat",)  # takes ten minutes
RESULTS = Path(__file__).parent / "results"


def main(names: list[str]) -> int:
    """Exit status: 2 for a name that is none."""
    if unknown := set(names) - set(BENCHMARKS):
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    scale = float(os.environ.get("BENCH_SCALE", "1"))
    console = Console(width=None if sys.stdout.isatty() else 140)  # a log has no width of its own
    with tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_FOLDER", ".")) as folder:
        machine = {**describe_machine(Path(folder)), "scale": f"{scale:g}"}
        for name, text in machine.items():
            console.print(f"[dim]{name}:[/] {text}", highlight=False)
        rows: list[Row] = []
        for name in names or [name for name in BENCHMARKS if name not in _WHEN_NAMED]:
            console.print(f"running {name} …")
            rows += BENCHMARKS[name](Path(folder), scale)
    machine["load average after"] = load_average()
    console.print(_table(rows), f"[dim]load average after:[/] {machine['load average after']}")
    _save(machine, rows)
    return 0


def _table(rows: list[Row]) -> Table:
    table = Table(title="client and server on the same machine")
    for name in ("figure", "value", "unit", "aim", "note"):
        table.add_column(name, justify="right" if name == "value" else "left")
    for row in rows:
        value = f"{row.value:,.0f}" if row.value >= 1000 else f"{row.value:,.2f}"
        table.add_row(row.name, value, row.unit, row.target, row.note)
    return table


def _save(machine: dict[str, str], rows: list[Row]) -> None:
    RESULTS.mkdir(exist_ok=True)
    content = {"machine": machine, "rows": [row._asdict() for row in rows]}
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
