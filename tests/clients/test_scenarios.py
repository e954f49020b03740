"""Each scenario gives the same observations with Tidemark as with a real broker."""

from __future__ import annotations

import pytest

from .judging import require_equal_observations
from .runs import Case, Runs
from .scenarios import JAVA, SCENARIOS
from .table import Verdicts

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.exhaustive,
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # the first test waits for the start of both systems
]
# The two forms of a header have one meaning, so that a few scenarios are enough for the second one.
_BINARY = (
    "send_sync",
    "send_batch",
    "send_properties",
    "push_orderly",
    "retry_once",
    "lite_subscribe",
    "query_message",
)
CASES = [
    *(Case(scenario, client) for scenario in SCENARIOS for client in scenario.clients),
    *(Case(scenario, JAVA, "binary") for scenario in SCENARIOS if scenario.name in _BINARY),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_client_of_tidemark_observes_what_it_observes_of_a_broker(case: Case, runs: Runs, verdicts: Verdicts) -> None:
    require_equal_observations(case, runs, verdicts)
