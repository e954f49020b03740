"""The table of docs/clients.md is of the scenarios and the versions that are in the repository."""

from __future__ import annotations

from pathlib import Path

from tests.clients.programs import GoProgram, JavaProgram
from tests.clients.scenarios import GO, JAVA, SCENARIOS
from tests.clients.systems import BROKER

PAGE = Path(__file__).resolve().parents[3] / "docs" / "clients.md"
TITLES = {f"{program.title} {program.version}": client for client, program in ((JAVA, JavaProgram), (GO, GoProgram))}


def test_table_of_clients_has_all_scenarios_and_the_current_versions() -> None:
    _, block, _ = (
        PAGE.read_text().replace("<!-- /clients-test -->", "<!-- clients-test -->").split("<!-- clients-test -->\n")
    )
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
    assert {title for title, *_ in rows} == set(TITLES)
    for title, system, passed, _ in rows:
        scenarios = [scenario for scenario in SCENARIOS if TITLES[title] in scenario.clients]
        count = len([scenario for scenario in scenarios if system != BROKER or not scenario.tidemark_only])
        done, of, ran = passed.split()  # the runs with TLS and with faults count, too
        assert (of, done) == ("of", ran)
        assert int(ran) >= count
