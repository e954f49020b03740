"""Writes the tables of docs/performance.md from what was kept of measurements. `make docs`.

benchmarks/peers/results/*.json  runs of `make bench-peers`, each with its machine, its scale and its pairs
benchmarks/alone/*.json          of `make bench`, rows that have an aim and no peer
benchmarks/profiles/*.json       of `make profile ROW=... KEEP=1`
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import orjson

from benchmarks.peers.table import cells_of
from benchmarks.table import number_text

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "peers" / "results"
ALONE = ROOT / "benchmarks" / "alone"
PROFILES = ROOT / "benchmarks" / "profiles"
_MARKS = "<!-- {name}: make docs -->", "<!-- {name} end -->"
_PLACES = 8  # of each process
_SECTIONS = {  # which section of the page says what limits a row, by how the row's key begins
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


def table_of(result: dict[str, Any]) -> str:
    """One run: where it was measured, then a row for each goal."""
    lines = [
        *_machine_lines(result),
        "| Figure | Unit | Tidemark | RocketMQ | Kafka | Ratio (least to greatest) | Goal | Met |",
        "|---|---|--:|--:|--:|--:|---|---|",
        *map(_row, result["rows"]),
    ]
    return "\n".join(lines)


def alone_table(result: dict[str, Any]) -> str:
    """One run of ours: where it was measured, then its rows."""
    lines = [
        *_machine_lines(result),
        "| Figure | Value | Unit | Aim | How |",
        "|---|--:|---|---|---|",
        *(
            f"| {row['name']} | {number_text(row['value'])} | {row['unit']} | {row['target']} | {row['note']} |"
            for row in result["rows"]
        ),
    ]
    return "\n".join(lines)


def _machine_lines(result: dict[str, Any]) -> list[str]:
    return ["; ".join(f"{name}: {text}" for name, text in result["machine"].items()) + ".", ""]


def _row(row: dict[str, Any]) -> str:
    return f"| {' | '.join([*cells_of(row), _met(row)])} |"


def _met(row: dict[str, Any]) -> str:
    if row["met"] is False:
        return f"[**no**](#{section_of(row['key'])})"
    return "yes" if row["met"] else ""


def section_of(key: str) -> str:
    """Anchor of the section that says what limits row *key*; KeyError where there is none."""
    for start, anchor in _SECTIONS.items():
        if key.startswith(start):
            return anchor
    raise KeyError(key)


def profile_table(profile: dict[str, Any]) -> str:
    """One profile: of what, where it was taken, and the places of each process."""
    machine = profile["machine"]
    lines = [
        f"`{profile['benchmark']}` ({machine['processor']}; scale {machine['scale']}):",
        "",
        "| Process | Function, without what it calls | Share |",
        "|---|---|--:|",
    ]
    for process, shares in profile["processes"].items():
        lines += [f"| {process} | `{one['place']}` | {one['share']:.1%} |" for one in shares[:_PLACES]]
    return "\n".join(lines)


def page_with(text: str, name: str, tables: list[str]) -> str:
    """*text* with *tables* between the two marks of *name*."""
    begin, end = (mark.format(name=name) for mark in _MARKS)
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    content = "\n\n".join(tables)
    return pattern.sub(lambda _: f"{begin}\n{content}\n{end}", text)


def current_page() -> str:
    """As it is to be."""
    text = page_with(PAGE.read_text(), "figures", [table_of(result) for result in _read(RESULTS)])
    text = page_with(text, "alone", [alone_table(result) for result in _read(ALONE)])
    return page_with(text, "profiles", [profile_table(profile) for profile in _read(PROFILES)])


def _read(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]


if __name__ == "__main__":
    PAGE.write_text(current_page())
    sys.exit(0)
