"""The comparison as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from benchmarks.peers import kafka, rocketmq
from benchmarks.peers.compare import OURS, Comparison, Pair
from benchmarks.peers.toolchain import KAFKA, ROCKETMQ

_MET = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}


def as_table(comparisons: Sequence[Comparison]) -> Table:
    """A row for each goal; figures are medians over the pairs."""
    table = Table(title="ours and theirs in turn on the same machine, client and server together")
    columns = ("figure", "unit", "ours", ROCKETMQ.title, KAFKA.title, "ratio (least to greatest)", "goal", "met")
    for name in columns:
        table.add_column(name, justify="left" if name in {"figure", "unit", "goal", "met"} else "right")
    for comparison in comparisons:
        table.add_row(*_cells(comparison))
    return table


def _cells(comparison: Comparison) -> list[str]:
    goal, ratio = comparison.goal, comparison.ratio
    name = goal.key if goal.key == goal.peer_key else f"{goal.key} : {goal.peer_key}"
    figures = [_number(comparison.figures.get(system)) for system in (OURS, ROCKETMQ.name, KAFKA.name)]
    ratios = f"{ratio.median:.2f} ({ratio.least:.2f} to {ratio.greatest:.2f})"
    return [name, comparison.unit, *figures, f"{ratios} × {goal.product.title}", goal.text, _MET[comparison.met]]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def as_data(
    comparisons: Sequence[Comparison], runs: Mapping[str, Sequence[Pair]], failures: Mapping[str, str]
) -> dict[str, Any]:
    """Comparisons, every run behind them, what failed, and how the peers were set up."""
    return {
        "rows": [
            {
                "key": each.goal.key,
                "peer_key": each.goal.peer_key,
                "peer": each.goal.product.name,
                "unit": each.unit,
                "pairs": each.pairs,
                "medians": dict(each.figures),
                "ratio": each.ratio._asdict(),
                "goal": each.goal.text,
                "met": each.met,
            }
            for each in comparisons
        ],
        "runs": {
            name: [
                {system: [figure._asdict() for figure in figures.values()] for system, figures in pair.items()}
                for pair in pairs
            ]
            for name, pairs in runs.items()
        },
        "failed": dict(failures),
        "peers": {
            ROCKETMQ.title: {"version": ROCKETMQ.version, "jvm": rocketmq.JVM_OPTIONS, "settings": rocketmq.SETTINGS},
            KAFKA.title: {"version": KAFKA.version, "jvm": kafka.JVM_OPTIONS},
        },
    }
