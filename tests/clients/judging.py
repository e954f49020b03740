"""Functions that tests share to judge a client."""

from __future__ import annotations

import pytest

from benchmarks.peers.toolchain import ToolchainMissingError

from .programs import Program
from .runs import Case, Runs
from .systems import BROKER, TIDEMARK, System
from .table import Verdicts

HAS_PASSED = pytest.StashKey[bool]()  # of a test that has run


def require_equal_observations(case: Case, runs: Runs, verdicts: Verdicts) -> None:
    """Require the scenario's document of each system."""
    program = require_program(runs.programs, case.client)
    expected = {BROKER: case.scenario.of_broker(case.client), TIDEMARK: case.scenario.of_tidemark(case.client)}
    seen = runs.results(case)
    if not seen:
        pytest.skip(f"only with Tidemark: {case.scenario.tidemark_only}")
    for system, observations in seen.items():
        verdicts.add(program.name, system, passed=observations == expected[system])
    assert seen == {system: expected[system] for system in seen}


def require_program(programs: dict[str, Program | ToolchainMissingError], client: str) -> Program:
    """Return the program of *client*; skip the test if this machine cannot build it."""
    program = programs[client]
    if isinstance(program, ToolchainMissingError):
        pytest.skip(str(program))
    return program


def require_system(systems: dict[str, System], name: str) -> System:
    """Return the system; skip the test if CLIENTS_SYSTEMS leaves it out."""
    if name not in systems:
        pytest.skip(f"CLIENTS_SYSTEMS leaves {name} out")
    return systems[name]
