"""One system of each kind and one program for each client, for all scenarios of a session.

CLIENTS_SYSTEMS  broker, tidemark, or both separated by a comma (the default)
CLIENTS_SERVER   the name server of Tidemark's clients: writer (the default) or query
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.peers.toolchain import ToolchainMissingError

from .programs import GoProgram, JavaProgram, Program
from .runs import Case, Runs
from .scenarios import GO, JAVA
from .systems import BROKER, TIDEMARK, BrokerSystem, System, TidemarkSystem
from .table import Verdicts

_VERDICTS = pytest.StashKey[Verdicts]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_VERDICTS] = Verdicts()


@pytest.fixture(scope="session")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, System]]:
    """Start the systems of CLIENTS_SYSTEMS."""
    names = (os.environ.get("CLIENTS_SYSTEMS") or f"{BROKER},{TIDEMARK}").split(",")
    by_writer = (os.environ.get("CLIENTS_SERVER") or "writer") == "writer"
    folder = tmp_path_factory.mktemp("systems")
    made: dict[str, System] = {}
    with ExitStack() as stack:
        if BROKER in names:
            made[BROKER] = stack.enter_context(BrokerSystem(folder / BROKER))
        if TIDEMARK in names:
            made[TIDEMARK] = stack.enter_context(TidemarkSystem(folder / TIDEMARK, by_writer=by_writer))
        yield made


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


@pytest.fixture(scope="session")
def runs(
    request: pytest.FixtureRequest,
    systems: dict[str, System],
    programs: dict[str, Program | ToolchainMissingError],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Runs]:
    """Begin the runs of the selected tests."""
    cases = [item.callspec.params["case"] for item in request.session.items if hasattr(item, "callspec")]
    begun = Runs(
        [case for case in cases if isinstance(case, Case)], systems, programs, Path(tmp_path_factory.mktemp("runs"))
    )
    yield begun
    begun.close()


@pytest.fixture
def verdicts(request: pytest.FixtureRequest) -> Verdicts:
    """Return the table of the session, which is printed at its end."""
    return request.config.stash[_VERDICTS]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table for docs/clients.md."""
    if lines := config.stash[_VERDICTS].lines():
        terminalreporter.section("classic clients")
        for line in lines:
            terminalreporter.line(line)
