"""The runs that a selection of goals needs."""

from __future__ import annotations

import pytest

from benchmarks.peers.plan import pick, plan

from .stand_ins import benchmark, goal, workload

RAW, JSON, SEND = goal(key="pull_raw", peer_key="pull"), goal(key="pull_json", peer_key="pull"), goal(key="send")


def test_words_select_goals() -> None:
    """A word matches our key, the other system's key, or the start of a key; no word selects all."""
    goals = [RAW, JSON, SEND]
    assert pick(goals, []) == goals
    assert pick(goals, ["pull_json"]) == [JSON]
    assert pick(goals, ["send", "pull_raw"]) == [RAW, SEND]
    assert pick(goals, ["pull"]) == [RAW, JSON]
    with pytest.raises(KeyError, match="pul"):
        pick(goals, ["send", "pul"])


def test_goals_that_share_a_run_share_a_round() -> None:
    """A figure that several rows are compared with, and a benchmark with many rows, run once per pair."""
    pull, send = workload("pull"), workload("send")
    benchmarks = {"raw": benchmark("pull_raw"), "json": benchmark("pull_json"), "send": benchmark("send", "more")}
    first, second = plan([RAW, SEND, JSON], benchmarks, [send, pull])
    assert (first.goals, first.ours, first.workloads) == ([RAW, JSON], ["raw", "json"], [pull])
    assert (second.goals, second.ours, second.workloads) == ([SEND], ["send"], [send])
    together = {"both": benchmark("pull_raw", "send")}
    (only,) = plan([RAW, SEND], together, [send, pull])
    assert (only.ours, only.workloads) == (["both"], [pull, send])


def test_a_goal_without_a_workload_is_an_error() -> None:
    """Both sides need a workload."""
    with pytest.raises(KeyError, match="send"):
        plan([SEND], {}, [workload("send")])
    with pytest.raises(KeyError, match="send"):
        plan([SEND], {"send": benchmark("send")}, [workload("pull")])
