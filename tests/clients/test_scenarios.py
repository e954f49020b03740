"""Each scenario gives the same observations with Tidemark as with a real broker."""

from __future__ import annotations

import pytest

from benchmarks.peers.toolchain import ToolchainMissingError

from .runs import Case, Runs
from .scenarios import SCENARIOS
from .systems import BROKER, TIDEMARK
from .table import Verdicts

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.exhaustive,
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # the first test waits for the start of both systems
]
CASES = [Case(scenario, client) for scenario in SCENARIOS for client in scenario.clients]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_client_of_tidemark_observes_what_it_observes_of_a_broker(case: Case, runs: Runs, verdicts: Verdicts) -> None:
    program = runs.programs[case.client]
    if isinstance(program, ToolchainMissingError):
        pytest.skip(str(program))
    expected = {BROKER: case.scenario.of_broker(case.client), TIDEMARK: case.scenario.of_tidemark(case.client)}
    seen = runs.results(case)
    if not seen:
        pytest.skip(f"only with Tidemark: {case.scenario.tidemark_only}")
    for system, observations in seen.items():
        verdicts.add(f"{program.title} {program.version}", system, passed=observations == expected[system])
    assert seen == {system: expected[system] for system in seen}
