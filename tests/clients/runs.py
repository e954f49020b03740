"""Runs: scenarios run ahead of their tests, a few at a time, because most of them only wait."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.toolchain import ToolchainMissingError

from .programs import Observations, Program, Way
from .scenarios import Scenario
from .systems import BROKER, System

MOST_PROCESSES = 2


class Case(NamedTuple):
    """A scenario with one client. way: the name of the way in which the client connects."""

    scenario: Scenario
    client: str
    way: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.scenario.name, self.client, self.way)))


class Runs:
    """The runs of all cases on all systems, in the order of the cases.

    programs: by client; ToolchainMissingError for one that this machine cannot build
    ways: by name
    """

    def __init__(
        self,
        cases: Iterable[Case],
        systems: Mapping[str, System],
        programs: dict[str, Program | ToolchainMissingError],
        ways: Mapping[str, Way],
        folder: Path,
    ) -> None:
        self.programs = programs
        self._systems = systems
        self._ways = ways
        self._folder = folder
        self._pool = ThreadPoolExecutor(MOST_PROCESSES)
        self._futures: dict[tuple[str, str], Future[Observations]] = {}
        for case in cases:
            program = programs[case.client]
            if isinstance(program, Program):
                for name, system in systems.items():
                    if name != BROKER or not case.scenario.tidemark_only:
                        self._futures[str(case), name] = self._pool.submit(self._runner(case, program, name, system))

    def _runner(self, case: Case, program: Program, name: str, system: System) -> Callable[[], Observations]:
        def run() -> Observations:
            topic = f"{case}-{secrets.token_hex(4)}"
            system.create_topic(topic, case.scenario.queues)
            return program.run(
                case.scenario.name,
                topic=topic,
                group=f"group-of-{topic}",
                name_server=system.name_server,
                folder=self._folder / name / topic,
                way=self._ways[case.way],
            )

        return run

    def results(self, case: Case) -> dict[str, Observations]:
        """Wait for the runs of *case*, and return their observations by system. Raises the error of a run."""
        return {
            name: self._futures[str(case), name].result()
            for name in self._systems
            if (str(case), name) in self._futures
        }

    def close(self) -> None:
        """Drop the runs that have not begun, and wait for the others."""
        self._pool.shutdown(cancel_futures=True)
