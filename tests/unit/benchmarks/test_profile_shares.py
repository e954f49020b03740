"""Shares from flame graphs: handwritten ones, and one of a real py-spy over a process of known shares."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from benchmarks.profile_shares import Share, keep_profile, own_samples, shares

PY_SPY = Path(sys.executable).with_name("py-spy")
HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:fg="http://github.com/jonhoo/inferno"><g id="frames">'


def graph(*frames: tuple[str, int, int, int]) -> str:
    """Return a flame graph of frames: name, first sample, samples, row."""
    groups = [
        f'<g><title>{name} ({samples} samples, 1.00%)</title><rect y="{row}" fg:x="{start}" fg:w="{samples}"/></g>'
        for name, start, samples, row in frames
    ]
    return HEAD + "".join(groups) + "</g></svg>"


@pytest.mark.parametrize("is_upside_down", [False, True])
def test_own_samples_exclude_called_functions(is_upside_down: bool) -> None:
    """The line, the library's folder and the caller do not matter."""
    rows = [48, 36, 24, 12] if is_upside_down else [12, 24, 36, 48]
    svg = graph(
        ("all", 0, 100, rows[0]),
        ("main (tool/app.py:1)", 0, 60, rows[1]),
        ("main (tool/app.py:9)", 60, 40, rows[1]),
        ("read (/opt/lib/python3.11/site-packages/pkg/files.py:7)", 10, 30, rows[2]),
        ("read (/opt/lib/python3.11/site-packages/pkg/files.py:8)", 60, 40, rows[2]),
        ("close (tool/app.py:3)", 10, 5, rows[3]),
    )
    assert own_samples(svg) == {"main (tool/app.py)": 30, "read (pkg/files.py)": 65, "close (tool/app.py)": 5}


def test_graphs_of_one_process_are_added(tmp_path: Path) -> None:
    """The largest share comes first."""
    paths = [tmp_path / "1.svg", tmp_path / "2.svg"]
    paths[0].write_text(graph(("all", 0, 10, 0), ("a (x.py:1)", 0, 10, 1)))
    paths[1].write_text(graph(("all", 0, 30, 0), ("b (x.py:1)", 0, 30, 1)))
    assert shares(paths) == [Share("b (x.py)", 0.75), Share("a (x.py)", 0.25)]
    assert shares(paths, 1) == [Share("b (x.py)", 0.75)]
    assert shares([]) == []
    path = keep_profile(tmp_path / "kept", "row", {"processor": "some"}, {"writer": shares(paths), "query": []})
    assert orjson.loads(path.read_bytes()) == {
        "benchmark": "row",
        "machine": {"processor": "some"},
        "processes": {"writer": [{"place": "b (x.py)", "share": 0.75}, {"place": "a (x.py)", "share": 0.25}]},
    }


def test_waiting_functions_are_excluded_from_profile_shares(tmp_path: Path) -> None:
    path = tmp_path / "1.svg"
    waits = (
        "Condition.wait (threading.py:1)",
        "EpollSelector.select (selectors.py:2)",
        "_worker (concurrent/futures/x.py:3)",
    )
    places = [(name, 100 * number, 100, 1) for number, name in enumerate(waits)]
    path.write_text(graph(("all", 0, 310, 0), *places, ("wait_for_nothing (x.py:1)", 300, 10, 1)))
    assert shares([path]) == [Share("wait_for_nothing (x.py)", 1.0)]


@pytest.mark.skipif(not PY_SPY.exists(), reason="py-spy comes with the group `bench`")
def test_a_recorded_profile_has_the_expected_shares(tmp_path: Path) -> None:
    """One of two loops gets three times the time of the other."""
    program = tmp_path / "program.py"
    program.write_text(
        "import time\n"
        "def spin(seconds):\n"
        "    end = time.process_time() + seconds\n"
        "    while time.process_time() < end: pass\n"
        "def long(): spin(1.5)\n"
        "def busy(seconds):\n"
        "    end = time.process_time() + seconds\n"
        "    while time.process_time() < end: pass\n"
        "long(); busy(0.5)\n"
    )
    svg = tmp_path / "graph.svg"
    command = [str(PY_SPY), "record", "--output", str(svg), "--rate", "100", "--", sys.executable, str(program)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if "ermission" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("py-spy may not look at other processes here")
    assert done.returncode == 0, done.stderr
    found = {share.place.split(" ")[0]: share.share for share in shares([svg])}
    assert 0.6 < found["spin"] < 0.9
    assert 0.1 < found["busy"] < 0.4
    assert found.get("long", 0) < 0.1
