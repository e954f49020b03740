"""Formats the comparison as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from benchmarks.peers import kafka, rocketmq
from benchmarks.peers.compare import OURS, Comparison, Pair
from benchmarks.peers.toolchain import KAFKA, ROCKETMQ

_TITLES = {product.name: product.title for product in (ROCKETMQ, KAFKA)}
_MET = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}


def as_table(comparisons: Sequence[Comparison]) -> Table:
    """Return a table with a row for each goal; figures are medians over the pairs."""
    table = Table(title="runs alternate on one machine, with client and server together")
    columns = ("figure", "unit", "Tidemark", ROCKETMQ.title, KAFKA.title, "ratio (least to greatest)", "goal", "met")
    for name in columns:
        table.add_column(name, justify="left" if name in {"figure", "unit", "goal", "met"} else "right")
    for comparison in comparisons:
        table.add_row(*cells_of(_row_of(comparison)), _MET[comparison.met])
    return table


def cells_of(row: Mapping[str, Any]) -> list[str]:
    """Return the texts of a row of `as_data`, except whether its goal is met."""
    ratio, title = row["ratio"], _TITLES[row["peer"]]
    name = row["key"] if row["key"] == row["peer_key"] else f"{row['key']} : {row['peer_key']}"
    figures = [_number(row["medians"].get(system)) for system in (OURS, *_TITLES)]
    ratios = f"{ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['greatest']:.2f}) × {title}"
    return [name, row["unit"], *figures, ratios, row["goal"]]


def _row_of(comparison: Comparison) -> dict[str, Any]:
    goal = comparison.goal
    return {
        "key": goal.key,
        "peer_key": goal.peer_key,
        "peer": goal.product.name,
        "unit": comparison.unit,
        "pairs": comparison.pairs,
        "medians": dict(comparison.figures),
        "ratio": comparison.ratio._asdict(),
        "goal": goal.text,
        "met": comparison.met,
    }


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def as_data(
    comparisons: Sequence[Comparison], runs: Mapping[str, Sequence[Pair]], failures: Mapping[str, str]
) -> dict[str, Any]:
    """Return the comparisons with all their runs, the failures, and the setup of the products."""
    return {
        "rows": [_row_of(each) for each in comparisons],
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
