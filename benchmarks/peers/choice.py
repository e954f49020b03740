"""Chooses the systems that can run on this machine, and the goals that they leave."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.peers.goals import Goal
from benchmarks.peers.plan import has_peer
from benchmarks.peers.python.environment import require
from benchmarks.peers.python.systems import System
from benchmarks.peers.toolchain import Product, ToolchainMissingError, load_programs, make_toolchain
from benchmarks.peers.workloads import Workload


class Choice(NamedTuple):
    """Goals and workloads that can run. skipped: reason by "skipped: " and the client's name."""

    goals: list[Goal]
    workloads: list[Workload]
    skipped: dict[str, str]


def choose(goals: Sequence[Goal], workloads: Sequence[Workload]) -> Choice:
    """Install the systems of *workloads*; print a line for each Python client and each goal that must be left out.

    Raises ToolchainMissingError if RocketMQ or Kafka cannot run and a goal compares with it.
    """
    missing: dict[str, str] = {}
    for name, product in {workload.product.name: workload.product for workload in workloads}.items():
        if isinstance(product, Product):
            make_toolchain(product, load_programs(product))
        elif isinstance(product, System):
            try:
                require(product)
            except ToolchainMissingError as error:
                missing[name] = str(error)
                print(f"skipped: {name}, because {error}", file=sys.stderr)
    left = [workload for workload in workloads if workload.product.name not in missing]
    possible = [goal for goal in goals if has_peer(goal, left)]
    for goal in goals:
        if goal not in possible:
            print(f"skipped: {goal.key}, because {goal.product.title} is missing", file=sys.stderr)
    return Choice(possible, left, {f"skipped: {name}": reason for name, reason in missing.items()})
