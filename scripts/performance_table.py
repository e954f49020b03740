"""Write the tables of docs/performance.md and benchmarks/NOTES.md from stored measurements. `make docs`.

benchmarks/peers/results/*.json  runs of `make bench-peers`, with machine, scale and pairs: each comparison once on the
                                 page, from its largest run; all runs in the notes
benchmarks/alone/*.json          runs of `make bench` without a peer: rows with an aim on the page, all in the notes
benchmarks/profiles/*.json       profiles by `make profile ROW=... KEEP=1`: in the notes
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import orjson

from benchmarks.peers.figures import BARE, NO_PEERS, OURS
from benchmarks.peers.goals import GOALS
from benchmarks.peers.table import CLIENT_TITLES, cells_of, figure_text, is_of_clients
from benchmarks.table import number_text

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
NOTES = ROOT / "benchmarks" / "NOTES.md"
RESULTS = ROOT / "benchmarks" / "peers" / "results"
ALONE = ROOT / "benchmarks" / "alone"
PROFILES = ROOT / "benchmarks" / "profiles"
_MARKS = "<!-- {name}: make docs -->", "<!-- {name} end -->"
_PLACES = 8  # rows per process
_PEERS = ("rocketmq", "kafka")  # in the order of the columns
_USUAL_UNIT = "msg/s"  # named once, above the table of the page
_REFERENCES = frozenset({"pull_ceiling", "pull_ceiling_read", "send_single_bare"})  # limits of the method: notes only
_YES_OR_NO = {True: "yes", False: "**no**", None: ""}
_SECTIONS = {  # prefix of a row's key → section of the page that explains the limit of the row
    "append_": "appends",
    "send_": "appends",
    "accumulated_": "appends",
    "visible_": "append-to-visible",
    "pull_": "pulls-of-1-kib",
    "rebuild": "rebuild",
    "id_lookup": "lookups",
    "key_lookup": "lookups",
    "spark_": "spark-batch-reads",
}


def results_table(results: list[dict[str, Any]]) -> str:
    """Return one table with each comparison once, from its largest run, and the machines below it.

    The comparisons have the order of the goals; those of former goals are last.
    """
    order = {(goal.key, goal.peer_key): number for number, goal in enumerate(GOALS)}
    best: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
    for run in sorted(range(len(results)), key=lambda run: float(results[run]["machine"]["scale"])):
        rows = [row for row in results[run]["rows"] if row["key"] not in _REFERENCES and not is_of_clients(row)]
        best.update({(row["key"], row["peer_key"]): (run + 1, row) for row in rows})
    ordered = [best[comparison] for comparison in sorted(best, key=lambda each: order.get(each, len(order)))]
    lines = [
        "| Run | Figure | Tidemark | RocketMQ | Kafka | Ratio | Goal |",
        "|--:|---|--:|--:|--:|--:|---|",
        *(f"| {' | '.join([str(run), *_short_cells(row)])} |" for run, row in ordered),
        "",
        *_short_machines([result["machine"] for result in results]),
    ]
    return "\n".join(lines)


def clients_table(results: list[dict[str, Any]]) -> str:
    """Return one table of the Python clients' goals, each from its largest run, beside the compared peer."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for result in sorted(results, key=lambda result: float(result["machine"]["scale"])):
        best.update({(row["key"], row["peer"]): row for row in result["rows"] if is_of_clients(row) and row["goal"]})
    if not best:
        return "No run is stored yet."
    lines = [
        "| Figure | Tidemark | Peer | bare Python | Ratio | Goal |",
        "|---|--:|--:|--:|--:|---|",
        *(f"| {' | '.join(_client_cells(row))} |" for row in best.values()),
        "",
        *_short_machines([result["machine"] for result in results]),
    ]
    return "\n".join(lines)


def _client_cells(row: dict[str, Any]) -> list[str]:
    medians, unit, ratio = row["medians"], row["unit"], row["ratio"]
    best = max if unit == _USUAL_UNIT else min
    peer = row["peer"] if row["peer"] in medians else best(medians.keys() - NO_PEERS, key=medians.__getitem__)
    name = row["key"].removeprefix("python_")
    return [
        name if unit == _USUAL_UNIT else f"{name} ({unit})",
        figure_text(medians[OURS]),
        f"{figure_text(medians[peer])} ({CLIENT_TITLES[peer]})",
        figure_text(medians[BARE]) if BARE in medians else "",
        f"{ratio['median']:.2f} ({ratio['least']:.2f}–{ratio['greatest']:.2f})",
        f"**{row['goal']}**" if row["met"] is False else row["goal"],
    ]


def all_clients_table(results: list[dict[str, Any]]) -> str:
    """Return one table with a row for each comparison of the Python clients, with all of them."""
    head = ["Figure", "Unit", *CLIENT_TITLES.values(), "Ratio (least to greatest)", "Goal", "Met"]
    lines = [head, ["---", "---", *("--:" for _ in CLIENT_TITLES), "--:", "---", "---"]]
    lines += [
        [*cells_of(row, CLIENT_TITLES), _YES_OR_NO[row["met"]]]
        for result in results
        for row in result["rows"]
        if is_of_clients(row)
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _short_cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of *row*; the compared figure and a missed goal are bold, and the goal is a ratio."""
    name, unit, *figures, _, goal = cells_of(row)
    compared = 1 + _PEERS.index(row["peer"])
    figures[compared] = f"**{figures[compared]}**"
    ratio = row["ratio"]
    sign, _, factor = goal.partition(" ")
    aim = f"{sign} {factor.split()[0] if ' × ' in factor else 1}" if goal else ""
    if row["met"] is False:
        aim = f"[**{aim}**](#{section_of(row['key'])})"
    figure = name if unit in (_USUAL_UNIT, name.rpartition("_")[2]) else f"{name} ({unit})"
    return [figure, *figures, f"{ratio['median']:.2f} ({ratio['least']:.2f}–{ratio['greatest']:.2f})", aim]


def _short_machines(machines: list[dict[str, str]]) -> list[str]:
    """Return a line for each run, after a line with the processor and the pairs if these are the same for all."""
    common = {f"{machine['processor']}; {machine['pairs']} pairs" for machine in machines}
    own = [f"scale {machine['scale']}; {machine['fdatasync of 4 KiB']}" for machine in machines]
    if len(common) > 1:
        own = [
            f"{machine['processor']}; {machine['pairs']} pairs; {text}"
            for machine, text in zip(machines, own, strict=True)
        ]
    head = f"{common.pop()}; " if len(common) == 1 else ""
    numbered = [f"{run}. {text}." for run, text in enumerate(own, 1)]
    return [f"The runs: {head}times of an `fdatasync` of 4 KiB.", "", *numbered]


def table_of(results: list[dict[str, Any]]) -> str:
    """Return one table with a row for each comparison of each run, and the machines of the runs below it."""
    lines = [
        "| Run | Figure | Unit | Tidemark | RocketMQ | Kafka | Ratio (least to greatest) | Goal | Met |",
        "|--:|---|---|--:|--:|--:|--:|---|---|",
        *(
            f"| {' | '.join([str(run), *cells_of(row), _YES_OR_NO[row['met']]])} |"
            for run, result in enumerate(results, 1)
            for row in result["rows"]
            if not is_of_clients(row)
        ),
        "",
        *(f"{run}. {_machine(result)}" for run, result in enumerate(results, 1)),
    ]
    return "\n".join(lines)


def alone_table(result: dict[str, Any]) -> str:
    """Return the machine of one run without a peer, then all its rows."""
    lines = [
        _machine(result),
        "",
        "| Figure | Value | Unit | Aim | How |",
        "|---|--:|---|---|---|",
        *(
            f"| {row['name']} | {number_text(row['value'])} | {row['unit']} | {row['target']} | {row['note']} |"
            for row in result["rows"]
        ),
    ]
    return "\n".join(lines)


def growth_table(results: list[dict[str, Any]]) -> str:
    """Return one table with the rows of *results* that have an aim which is no peer's."""
    lines = [
        "| Figure | Value | Aim |",
        "|---|--:|---|",
        *(
            f"| {row['name']} | {number_text(row['value'])} {row['unit']} | {row['target']} |"
            for result in results
            for row in result["rows"]
            if row["target"] and " × " not in row["target"]  # of a peer: in the table of peers
        ),
    ]
    return "\n".join(lines)


def _machine(result: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in result["machine"].items()) + "."


def section_of(key: str) -> str:
    """Return the anchor of the section that explains the limit of row *key*. Raises KeyError if there is none."""
    for start, anchor in _SECTIONS.items():
        if key.startswith(start):
            return anchor
    raise KeyError(key)


def profile_table(profile: dict[str, Any]) -> str:
    """Return the table of one profile: benchmark, machine, and the most expensive functions of each process."""
    machine = profile["machine"]
    lines = [
        f"`{profile['benchmark']}` ({machine['processor']}; scale {machine['scale']}):",
        "",
        "| Process | Function, without its callees | Share |",
        "|---|---|--:|",
    ]
    for process, shares in profile["processes"].items():
        lines += [f"| {process} | `{one['place']}` | {one['share']:.1%} |" for one in shares[:_PLACES]]
    return "\n".join(lines)


def page_with(text: str, name: str, tables: list[str]) -> str:
    """Return *text* with *tables* between the two marks of *name*."""
    begin, end = (mark.format(name=name) for mark in _MARKS)
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    content = "\n\n".join(tables)
    return pattern.sub(lambda _: f"{begin}\n{content}\n{end}", text)


def current_page() -> str:
    """Return docs/performance.md with tables of the stored results."""
    text = page_with(PAGE.read_text(), "figures", [results_table(_runs(of_clients=False))])
    text = page_with(text, "clients", [clients_table(_runs(of_clients=True))])
    return page_with(text, "growth", [growth_table(_read(ALONE))])


def current_notes() -> str:
    """Return benchmarks/NOTES.md with tables of the stored results."""
    text = page_with(NOTES.read_text(), "figures", [table_of(_runs(of_clients=False))])
    text = page_with(text, "clients", [all_clients_table(_runs(of_clients=True))])
    text = page_with(text, "alone", [alone_table(result) for result in _read(ALONE)])
    return page_with(text, "profiles", [profile_table(profile) for profile in _read(PROFILES)])


def _runs(*, of_clients: bool) -> list[dict[str, Any]]:
    """Return the runs that compare Python clients, or the others."""
    return [result for result in _read(RESULTS) if is_of_clients(result["rows"][0]) is of_clients]


def _read(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]


if __name__ == "__main__":
    PAGE.write_text(current_page())
    NOTES.write_text(current_notes())
    sys.exit(0)
