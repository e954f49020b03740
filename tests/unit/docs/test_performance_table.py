"""The tables of docs/performance.md show the committed results, figure by figure."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from benchmarks.peers.table import is_of_clients
from scripts.performance_table import (
    NOTES,
    PAGE,
    PROFILES,
    RESULTS,
    all_clients_table,
    alone_table,
    clients_table,
    current_notes,
    current_page,
    growth_table,
    page_with,
    profile_table,
    results_table,
    section_of,
    table_of,
)

ROW = {
    "key": "rebuild",
    "peer_key": "rebuild",
    "peer": "rocketmq",
    "unit": "MB/s",
    "medians": {"tidemark": 1500.4, "rocketmq": 50.25},
    "ratio": {"median": 30.1, "least": 20.0, "greatest": 31.0},
    "goal": "≥ 6 × RocketMQ",
    "met": True,
}


def test_the_page_is_current() -> None:
    """`make docs` writes the page."""
    assert PAGE.read_text() == current_page()
    assert NOTES.read_text() == current_notes()


def test_a_row_shows_each_system_the_spread_and_the_goal() -> None:
    """A cell without a measurement is empty."""
    page = page_with(
        "before\n<!-- figures: make docs -->old<!-- figures end -->\nafter\n",
        "figures",
        [table_of([{"machine": {"processor": "some"}, "rows": [ROW, {**ROW, "peer_key": "other", "met": False}]}])],
    )
    assert page.startswith("before\n") and page.endswith("\nafter\n") and "old" not in page
    assert "| rebuild | MB/s | 1,500 | 50.25 |  | 30.10 (20.00 to 31.00) × RocketMQ | ≥ 6 × RocketMQ | yes |" in page
    assert page.splitlines()[-5].endswith("× RocketMQ | ≥ 6 × RocketMQ | **no** |")
    assert page.splitlines()[-3] == "1. processor: some."


def test_results_have_each_comparison_once_from_its_largest_run() -> None:
    machine = {"processor": "some", "pairs": "3", "fdatasync of 4 KiB": "p50 1 ms, p99 2 ms"}
    small = {"machine": {**machine, "scale": "0.2"}, "rows": [ROW, {**ROW, "key": "lookup", "met": None, "goal": ""}]}
    large = {"machine": {**machine, "scale": "1"}, "rows": [{**ROW, "met": False, "goal": "≥ RocketMQ"}]}
    lines = results_table([large, small]).splitlines()
    assert lines[2:5] == [
        "| 1 | rebuild (MB/s) | 1,500 | **50.25** |  | 30.10 (20.00–31.00) | [**≥ 1**](#rebuild) |",
        "| 2 | lookup : rebuild (MB/s) | 1,500 | **50.25** |  | 30.10 (20.00–31.00) |  |",
        "",
    ]
    assert lines[5] == "The runs: some; 3 pairs; times of an `fdatasync` of 4 KiB."
    assert lines[8] == "2. scale 0.2; p50 1 ms, p99 2 ms."


def test_results_have_the_order_of_the_goals_across_runs() -> None:
    """A comparison that was added in a later run is beside its relatives; one of a former goal is last."""
    machine = {"processor": "some", "scale": "1", "pairs": "3", "fdatasync of 4 KiB": "p50 1 ms, p99 2 ms"}
    runs: list[dict[str, Any]] = [
        {"machine": machine, "rows": [{**ROW, "key": key, "peer_key": key} for key in keys]}
        for keys in (["former", "rebuild", "send_single_sync"], ["send_single_async"])
    ]
    figures = [line.split("|")[2].split()[0] for line in results_table(runs).splitlines()[2:6]]
    assert figures == ["send_single_sync", "send_single_async", "rebuild", "former"]


def test_runs_of_several_machines_have_a_machine_each() -> None:
    machine = {"processor": "some", "scale": "1", "pairs": "3", "fdatasync of 4 KiB": "p50 1 ms, p99 2 ms"}
    results: list[dict[str, Any]] = [
        {"machine": machine, "rows": [ROW]},
        {"machine": {**machine, "processor": "other"}, "rows": []},
    ]
    lines = results_table(results).splitlines()
    assert lines[4] == "The runs: times of an `fdatasync` of 4 KiB."
    assert lines[-1] == "2. other; 3 pairs; scale 1; p50 1 ms, p99 2 ms."


def test_results_omit_references_and_the_usual_unit() -> None:
    machine = {"processor": "some", "scale": "1", "pairs": "3", "fdatasync of 4 KiB": "p50 1 ms, p99 2 ms"}
    rows = [{**ROW, "key": "pull_ceiling"}, {**ROW, "key": "pull_raw_1024", "unit": "msg/s"}]
    lines = results_table([{"machine": machine, "rows": rows}]).splitlines()
    assert len([line for line in lines if line.startswith("|")]) == 3
    assert lines[2].startswith("| 1 | pull_raw_1024 : rebuild | 1,500 |")


def test_rows_of_clients_have_a_table_of_their_own() -> None:
    """The page has the goals, each beside the peer that decides; the notes have all comparisons."""
    machine = {"processor": "some", "scale": "1", "pairs": "3", "fdatasync of 4 KiB": "p50 1 ms, p99 2 ms"}
    row = {
        **ROW,
        "key": "python_send_async",
        "peer_key": "python_send_async",
        "peer": "best",
        "unit": "msg/s",
        "medians": {"tidemark": 900, "tidemark-grpc": 800, "nats-py": 700, "redis-py": 1000, "bare": 5000},
        "ratio": {"median": 0.9, "least": 0.8, "greatest": 1.0},
        "goal": "",
        "met": None,
    }
    missed = {**row, "peer": "nats-py", "goal": "≥ nats-py", "met": False}
    met = {**row, "goal": "≥ 0.8 × best peer", "met": True}
    results = [{"machine": machine, "rows": [ROW, row, missed, met]}]
    assert clients_table(results).splitlines()[2:4] == [
        "| send_async | 900 | 700 (nats-py) | 5,000 | 0.90 (0.80–1.00) | **≥ nats-py** |",
        "| send_async | 900 | 1,000 (redis-py) | 5,000 | 0.90 (0.80–1.00) | ≥ 0.8 × best peer |",
    ]
    assert all_clients_table(results).splitlines()[2:4] == [
        "| python_send_async | msg/s | 900 | 800 |  |  | 700 | 1,000 | 5,000 | 0.90 (0.80 to 1.00) × best peer |  |  |",
        "| python_send_async | msg/s | 900 | 800 |  |  | 700 | 1,000 | 5,000 | 0.90 (0.80 to 1.00) × nats-py "
        "| ≥ nats-py | **no** |",
    ]
    assert "python" not in results_table(results) + table_of(results)
    assert clients_table([{"machine": machine, "rows": [ROW]}]) == "No run is stored yet."


def test_a_row_without_a_peer_shows_aim_and_note() -> None:
    row = {"name": "memory, writer", "value": 94.195, "unit": "MB", "target": "< 250", "note": "after 600 s"}
    table = alone_table({"machine": {"processor": "some", "scale": "1"}, "rows": [row]})
    assert table.startswith("processor: some; scale: 1.\n\n")
    assert table.endswith("\n| memory, writer | 94.19 | MB | < 250 | after 600 s |")


def test_the_growth_table_has_only_rows_with_an_aim() -> None:
    row = {"name": "memory, writer", "value": 94.195, "unit": "MB", "target": "< 250", "note": "after 600 s"}
    table = growth_table([{"machine": {}, "rows": [row, {**row, "name": "memory, worker", "target": ""}]}])
    assert table.splitlines()[2:] == ["| memory, writer | 94.19 MB | < 250 |"]


def test_a_missed_goal_has_a_section_with_a_profile() -> None:
    sections = {
        re.sub(r"[^a-z0-9 ]", "", title.lower()).replace(" ", "-"): text
        for title, text in re.findall(r"^### (.+)\n((?:(?!#).*\n)+)", PAGE.read_text(), re.MULTILINE)
    }
    runs = [orjson.loads(path.read_bytes()) for path in RESULTS.glob("*.json")]
    rows = [row for run in runs for row in run["rows"] if not is_of_clients(row)]  # those refer to their own section
    missed = {row["key"] for row in rows if row["met"] is False}
    assert missed
    for key in missed:
        named = re.match(r"\s*Profiles?: ([^.]+)\.", sections[section_of(key)])
        assert named is not None, key
        assert all((PROFILES / f"{name}.json").exists() for name in re.findall("`(.+?)`", named[1])), named[1]


def test_a_row_without_a_section_is_refused() -> None:
    with pytest.raises(KeyError, match="start_clean_s"):
        section_of("start_clean_s")


def test_a_profile_lists_the_top_functions_of_each_process() -> None:
    places = [{"place": f"function{number} (module.py)", "share": 0.3 / (number + 1)} for number in range(12)]
    profile = {
        "benchmark": "rebuild",
        "machine": {"processor": "some", "scale": "0.5"},
        "processes": {"writer": places, "query": places[:1]},
    }
    lines = profile_table(profile).splitlines()
    assert lines[0] == "`rebuild` (some; scale 0.5):"
    assert lines[4] == "| writer | `function0 (module.py)` | 30.0% |"
    assert len(lines) == 4 + 8 + 1
