"""Writes the tables of docs/performance.md from the committed results of `make bench-peers`. `make docs`.

Results are benchmarks/peers/results/*.json, as `make bench-peers` has written them: one for each run, each with its
machine, its scale and its pairs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import orjson

from benchmarks.peers.table import cells_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "peers" / "results"
_BEGIN, _END = "<!-- figures: make docs -->", "<!-- figures end -->"
_MET = {True: "yes", False: "**no**", None: ""}


def table_of(result: dict[str, Any]) -> str:
    """One run: where it was measured, then a row for each goal."""
    machine = "; ".join(f"{name}: {text}" for name, text in result["machine"].items())
    lines = [
        machine + ".",
        "",
        "| Figure | Unit | Tidemark | RocketMQ | Kafka | Ratio (least to greatest) | Goal | Met |",
        "|---|---|--:|--:|--:|--:|---|---|",
        *map(_row, result["rows"]),
    ]
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> str:
    return f"| {' | '.join([*cells_of(row), _MET[row['met']]])} |"


def page_with(text: str, results: list[dict[str, Any]]) -> str:
    """*text* with the tables of *results* between its two marks."""
    tables = "\n\n".join(table_of(result) for result in results)
    pattern = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{_BEGIN}\n{tables}\n{_END}", text)


def current_page() -> str:
    """As it is to be."""
    results = [orjson.loads(path.read_bytes()) for path in sorted(RESULTS.glob("*.json"))]
    return page_with(PAGE.read_text(), results)


if __name__ == "__main__":
    PAGE.write_text(current_page())
    sys.exit(0)
