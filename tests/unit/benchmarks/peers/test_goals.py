"""The table of goals and their workloads."""

from __future__ import annotations

from benchmarks.peers.goals import GOALS, Better, Limit
from benchmarks.peers.python.systems import BEST, TIDEMARK_GRPC
from benchmarks.peers.workloads import WORKLOADS

from .stand_ins import goal


def test_every_goal_has_a_workload_of_its_peer() -> None:
    """No figure of another system is measured by two workloads."""
    measured = [(workload.product, key) for workload in WORKLOADS for key in workload.keys]
    assert len(set(measured)) == len(measured)
    assert {(goal.product, goal.peer_key) for goal in GOALS if goal.product is not BEST} <= set(measured)
    others = {key for system, key in measured if system is not TIDEMARK_GRPC}
    assert {goal.peer_key for goal in GOALS} <= others


def test_every_workload_serves_a_goal() -> None:
    """A workload serves a goal, or gives a figure that is shown next to one."""
    keys = {goal.peer_key for goal in GOALS}
    assert all(set(workload.keys) <= keys for workload in WORKLOADS)


def test_the_text_of_a_goal_has_factor_and_peer() -> None:
    """A factor of 1 is not shown; without a factor there is no goal."""
    assert goal(3).text == "≥ 3 × RocketMQ"
    assert goal(1, Better.LOWER).text == "≤ RocketMQ"
    assert goal(None).text == ""
    assert goal(None, Better.LOWER)._replace(limit=Limit(120, "µs")).text == "≤ 120 µs"
