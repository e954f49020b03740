"""One system of each kind and one program for each client, for all scenarios of a session.

CLIENTS_SYSTEMS  broker, tidemark, or both separated by a comma (the default)
CLIENTS_SERVER   the name server of Tidemark's clients: writer (the default) or query
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.peers.toolchain import ToolchainMissingError

from .judging import HAS_PASSED
from .programs import BINARY, USUAL, GoProgram, JavaProgram, Program, Way
from .runs import Case, Runs
from .scenarios import GO, JAVA
from .systems import BROKER, TIDEMARK, BrokerSystem, System, TidemarkSystem
from .table import Verdicts

_VERDICTS = pytest.StashKey[Verdicts]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_VERDICTS] = Verdicts()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the outcome of each test for its fixtures."""
    report = yield
    if call.when == "call":
        item.stash[HAS_PASSED] = report.passed
    return report


def wanted_systems() -> list[str]:
    """Return the names of CLIENTS_SYSTEMS."""
    return (os.environ.get("CLIENTS_SYSTEMS") or f"{BROKER},{TIDEMARK}").split(",")


@pytest.fixture(scope="session")
def by_writer() -> bool:
    """Return True if CLIENTS_SERVER makes the writer the name server."""
    return (os.environ.get("CLIENTS_SERVER") or "writer") == "writer"


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory, by_writer: bool) -> Iterator[dict[str, System]]:
    """Start the systems of CLIENTS_SYSTEMS, for the tests of one module."""
    folder = tmp_path_factory.mktemp("systems")
    made: dict[str, System] = {}
    with ExitStack() as stack:
        if BROKER in wanted_systems():
            made[BROKER] = stack.enter_context(BrokerSystem(folder / BROKER))
        if TIDEMARK in wanted_systems():
            made[TIDEMARK] = stack.enter_context(TidemarkSystem(folder / TIDEMARK, by_writer=by_writer))
        yield made


@pytest.fixture(scope="module")
def ways() -> dict[str, Way]:
    """Return the ways in which clients connect, by their name in a Case."""
    return {"": USUAL, "binary": BINARY}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Program | ToolchainMissingError]:
    """Build the program of each client."""
    made: dict[str, Program | ToolchainMissingError] = {}
    for client, make in ((JAVA, JavaProgram), (GO, lambda: GoProgram(tmp_path_factory.mktemp("go")))):
        try:
            made[client] = make()
        except ToolchainMissingError as error:
            made[client] = error
    return made


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest,
    systems: dict[str, System],
    programs: dict[str, Program | ToolchainMissingError],
    ways: dict[str, Way],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Runs]:
    """Begin the runs of the module's selected tests."""
    own = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    cases = [item.callspec.params.get("case") for item in own]
    begun = Runs(
        [case for case in cases if isinstance(case, Case)],
        systems,
        programs,
        ways,
        Path(tmp_path_factory.mktemp("runs")),
    )
    yield begun
    begun.close()


@pytest.fixture
def verdicts(request: pytest.FixtureRequest) -> Verdicts:
    """Return the table of the session, which is printed at its end."""
    return request.config.stash[_VERDICTS]


@pytest.fixture
def count_as_scenario(request: pytest.FixtureRequest, verdicts: Verdicts) -> Iterator[Callable[[Program, str], None]]:
    """Return a function with which a test becomes a scenario of a program and a system in the table."""
    counted: list[tuple[Program, str]] = []
    yield lambda program, system: counted.append((program, system))
    for program, system in counted:
        verdicts.add(program.name, system, passed=request.node.stash.get(HAS_PASSED, False))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table for docs/clients.md."""
    if lines := config.stash[_VERDICTS].lines():
        terminalreporter.section("classic clients")
        for line in lines:
            terminalreporter.line(line)
