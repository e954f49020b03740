"""Formats the comparison as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from benchmarks.peers import kafka, rocketmq
from benchmarks.peers.compare import Comparison, Pair
from benchmarks.peers.figures import OURS
from benchmarks.peers.python.environment import NATS_VERSION, client_versions
from benchmarks.peers.python.systems import BEST, SYSTEMS
from benchmarks.peers.toolchain import KAFKA, ROCKETMQ

PRODUCT_TITLES = {OURS: "Tidemark", **{product.name: product.title for product in (ROCKETMQ, KAFKA)}}
CLIENT_TITLES = {system.name: system.title for system in SYSTEMS}
_TITLES = {**CLIENT_TITLES, **PRODUCT_TITLES, BEST.name: BEST.title}
_MET = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}


def as_tables(comparisons: Sequence[Comparison]) -> list[Table]:
    """Return a table of the products and one of the Python clients, as far as they have rows.

    Each has a row for each goal; figures are medians over the pairs.
    """
    rows = [(_row_of(comparison), comparison.met) for comparison in comparisons]
    products = [row for row in rows if not is_of_clients(row[0])]
    clients = [row for row in rows if is_of_clients(row[0])]
    return [_table(some, titles) for some, titles in ((products, PRODUCT_TITLES), (clients, CLIENT_TITLES)) if some]


def _table(rows: Sequence[tuple[Mapping[str, Any], bool | None]], titles: Mapping[str, str]) -> Table:
    table = Table(title="runs alternate on one machine, with client and server together")
    columns = ("figure", "unit", *titles.values(), "ratio (least to greatest)", "goal", "met")
    for name in columns:
        table.add_column(name, justify="left" if name in {"figure", "unit", "goal", "met"} else "right")
    for row, met in rows:
        table.add_row(*cells_of(row, titles), _MET[met])
    return table


def is_of_clients(row: Mapping[str, Any]) -> bool:
    """Return True if a row of `as_data` compares Python clients, not products."""
    return row["peer"] not in PRODUCT_TITLES


def cells_of(row: Mapping[str, Any], titles: Mapping[str, str] = PRODUCT_TITLES) -> list[str]:
    """Return the texts of a row of `as_data`, except whether its goal is met."""
    ratio, title = row["ratio"], _TITLES[row["peer"]]
    name = row["key"] if row["key"] == row["peer_key"] else f"{row['key']} : {row['peer_key']}"
    figures = [figure_text(row["medians"].get(system)) for system in titles]
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


def figure_text(value: float | None) -> str:
    """Return a figure with two decimals, from 100 on without; "" for none."""
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
            "nats-server": {"version": NATS_VERSION},
            "Python clients": client_versions(),
        },
    }
