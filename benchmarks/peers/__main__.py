"""`python -m benchmarks.peers [row…]`: runs equal work on Tidemark and its peers in turn; prints the ratios.

Environment variables: BENCH (rows, like the arguments), BENCH_SCALE (default: 1), BENCH_PAIRS (default: 3; with fewer
there is no verdict), BENCH_PEERS (default: all; the product in a row's goal is always measured), BENCH_FOLDER (folder
for the stores; default: the current one).
The results so far are written to benchmarks/results after each round. A Python client that cannot be installed is
skipped, with a line that gives the reason.
Exit status: 0, even with missed goals; 1 if a run failed; 2 for an unknown row, or if Java or Maven is missing.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.catalog import BENCHMARKS
from benchmarks.machine import describe_machine, load_average
from benchmarks.peers.choice import choose
from benchmarks.peers.compare import Comparison, compare
from benchmarks.peers.goals import GOALS, Goal
from benchmarks.peers.interleave import Outcome, run_rounds
from benchmarks.peers.plan import OurBenchmark, Round, pick, plan
from benchmarks.peers.python.durability import durability_lines
from benchmarks.peers.python.rows import OURS_BY_NAME
from benchmarks.peers.table import as_data, as_tables
from benchmarks.peers.toolchain import ToolchainMissingError
from benchmarks.peers.work.same_client import SAME_CLIENT
from benchmarks.peers.workloads import WORKLOADS, Workload

RESULTS = Path(__file__).parents[1] / "results"
OURS: dict[str, OurBenchmark] = {**BENCHMARKS, **SAME_CLIENT, **OURS_BY_NAME}
_COLUMNS = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))


def main(words: Sequence[str]) -> int:
    """Run the comparison and return the exit status."""
    try:
        goals = pick(GOALS, words)
    except KeyError as error:
        print(
            f"unknown row {error.args[0]}: use {', '.join(dict.fromkeys(goal.key for goal in GOALS))}", file=sys.stderr
        )
        return 2
    try:
        chosen = choose(goals, _wanted_workloads(goals))
    except ToolchainMissingError as error:
        print(f"RocketMQ and Kafka cannot run on this machine: {error}", file=sys.stderr)
        return 2
    rounds = plan(chosen.goals, OURS, chosen.workloads)
    console = Console(width=None if sys.stdout.isatty() else 180)  # a log file has no width
    scale, pairs = float(os.environ.get("BENCH_SCALE", "1")), int(os.environ.get("BENCH_PAIRS", "3"))
    with tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_FOLDER", ".")) as name:
        folder = Path(name)
        machine = {**describe_machine(folder), "scale": f"{scale:g}", "pairs": str(pairs), **chosen.skipped}
        path = RESULTS / f"peers-{time.strftime('%Y%m%d-%H%M%S')}.json"
        with Progress(*_COLUMNS, console=console) as progress:
            outcome = run_rounds(
                rounds,
                OURS,
                folder,
                scale=scale,
                pairs=pairs,
                progress=progress,
                after_each=lambda so_far: _write(path, machine, rounds, so_far),
            )
    machine["load average after"] = load_average()
    _write(path, machine, rounds, outcome)
    _print(console, machine, rounds, outcome)
    return 1 if outcome.failures else 0


def _wanted_workloads(goals: Sequence[Goal]) -> list[Workload]:
    """Return the workloads for *goals* of the systems in BENCH_PEERS, and of the systems in the goals."""
    words = os.environ.get("BENCH_PEERS")
    names = {goal.product.name for goal in goals} | set(words.split(",") if words else ())
    keys = {goal.peer_key for goal in goals}
    return [
        workload
        for workload in WORKLOADS
        if keys & set(workload.keys) and (not words or workload.product.name in names)
    ]


def _comparisons(rounds: Sequence[Round], outcome: Outcome) -> list[Comparison]:
    measured = [each for each in rounds if each.name in outcome.runs]
    return [compare(goal, outcome.runs[each.name]) for each in measured for goal in each.goals]


def _print(console: Console, machine: Mapping[str, str], rounds: Sequence[Round], outcome: Outcome) -> None:
    for name, text in machine.items():
        console.print(f"[dim]{name}:[/] {text}", highlight=False)
    for line in durability_lines(rounds):
        console.print(f"[dim]{line}[/]", highlight=False)
    for table in as_tables(_comparisons(rounds, outcome)):
        console.print(table)
    for name, text in outcome.failures.items():
        console.print(f"failed, no figures: {name}: {text}", style="red", markup=False, highlight=False)


def _write(path: Path, machine: Mapping[str, str], rounds: Sequence[Round], outcome: Outcome) -> None:
    path.parent.mkdir(exist_ok=True)
    content = {"machine": machine, **as_data(_comparisons(rounds, outcome), outcome.runs, outcome.failures)}
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    signal.signal(
        signal.SIGTERM, lambda number, _: sys.exit(128 + number)
    )  # raises, so that started processes are ended
    sys.exit(main(sys.argv[1:] or os.environ.get("BENCH", "").replace(",", " ").split()))
