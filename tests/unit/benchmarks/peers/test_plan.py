"""Which runs a few goals need."""

from __future__ import annotations

import pytest

from benchmarks.peers.plan import pick, plan

from .stand_ins import benchmark, goal, workload

RAW, JSON, SEND = goal(key="pull_raw", peer_key="pull"), goal(key="pull_json", peer_key="pull"), goal(key="send")


def test_words_pick_goals() -> None:
    """By our key, by the peers' key, by how a key begins; no word picks all."""
    goals = [RAW, JSON, SEND]
    assert pick(goals, []) == goals
    assert pick(goals, ["pull_json"]) == [JSON]
    assert pick(goals, ["send", "pull_raw"]) == [RAW, SEND]
    assert pick(goals, ["pull"]) == [RAW, JSON]
    with pytest.raises(KeyError, match="pul"):
        pick(goals, ["send", "pul"])


def test_goals_that_share_a_run_share_a_round() -> None:
    """What several rows are compared with runs once in a pair, and so does a benchmark with many rows."""
    pull, send = workload("pull"), workload("send")
    benchmarks = {"raw": benchmark("pull_raw"), "json": benchmark("pull_json"), "send": benchmark("send", "more")}
    first, second = plan([RAW, SEND, JSON], benchmarks, [send, pull])
    assert (first.goals, first.ours, first.workloads) == ([RAW, JSON], ["raw", "json"], [pull])
    assert (second.goals, second.ours, second.workloads) == ([SEND], ["send"], [send])
    together = {"both": benchmark("pull_raw", "send")}
    (only,) = plan([RAW, SEND], together, [send, pull])
    assert (only.ours, only.workloads) == (["both"], [pull, send])


def test_a_goal_that_nobody_measures_is_an_error() -> None:
    """Neither side may be missing."""
    with pytest.raises(KeyError, match="send"):
        plan([SEND], {}, [workload("send")])
    with pytest.raises(KeyError, match="send"):
        plan([SEND], {"send": benchmark("send")}, [workload("pull")])
