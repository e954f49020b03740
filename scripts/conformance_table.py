"""Writes docs/conformance.md: for each behaviour that RocketMQ's own tests assert, the test that shows it. `make docs`.

tests/conformance/peer/behaviours.toml lists the behaviours; the name of a test contains their identifiers.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "conformance.md"
TESTS = ROOT / "tests" / "conformance"
PEER = TESTS / "peer"
BEHAVIOURS = PEER / "behaviours.toml"
_TOKEN = re.compile(r"([a-z]+)[0-9]+")
_INTRODUCTION = (
    "This page lists the behaviours that the tests of Apache RocketMQ assert (apache/rocketmq at 8fc57f14, "
    "5.3.4-SNAPSHOT).\nEach one has the test of Tidemark that shows it, or the reason why it does not apply.\n"
    "The names of tests contain the identifiers: `pytest tests/conformance/peer -k bcq9`.\n"
    "`make docs` writes this page; a test checks it."
)
_VERSIONS = (
    "## The real broker\n"
    "\n"
    "`make conformance` runs the tests of `tests/conformance/broker` with a broker of RocketMQ 5.3.3 and with one"
    " of 5.5.1, from Maven Central.\n"
    "`CONFORMANCE_BROKERS`, versions separated by commas, chooses others; without it, 5.3.3 is used.\n"
    "\n"
    "- Maven Central has the modules `broker`, `common`, `remoting`, `store` and `tiered-store` of 5.5.1. The "
    "name server, the client and the other modules are those of 5.5.0.\n"
    "- Both versions keep ConsumeQueues, index files and consumer offsets in files. The settings that make 5.5.1 "
    "keep them in RocksDB are off by default: `indexRocksDBEnable`, `transRocksDBEnable`, `timerRocksDBEnable`, "
    "`storeType=defaultRocksDB` and the combined ConsumeQueue store. Tidemark reads and writes the files alone, "
    "so these settings must stay off on a shared directory.\n"
    "- 5.5.1 can switch its index files off, too (`indexFileWriteEnable=false`, `indexFileReadEnable=false`): "
    "they must stay on.\n"
    "- After a kill 5.5.1 dispatches at most `commitLogRecoverMaxNum` (10) files of the log again, and 5.3.3 the whole "
    "log. The tests set it to 1,000,000, so that a broker that takes over from a killed Tidemark dispatches all of it. "
    "After `tidemark store hand-back` nothing is dispatched again.\n"
    "- The settings of the tests are the same for both versions."
)
_FIELDS = {"behaviour", "not_applicable", "note", "missing"}


class Behaviour(NamedTuple):
    """One behaviour. It must have a test, or one of not_applicable and missing."""

    identifier: str
    section: str  # RocketMQ's test class
    behaviour: str
    not_applicable: str = ""
    note: str = ""
    missing: str = ""


class NamedTest(NamedTuple):
    """A test as ``path::name`` in the repository, and the identifiers in its name, in capitals."""

    place: str
    identifiers: list[str]


def load_behaviours(text: str) -> list[Behaviour]:
    """Return all behaviours in the file's order. Raises ValueError for an unknown field."""
    found = []
    for section, entries in tomllib.loads(text).items():
        for identifier, entry in entries.items():
            fields = {"behaviour": entry} if isinstance(entry, str) else entry
            if fields.keys() - _FIELDS:
                raise ValueError(f"{identifier} has unknown fields: {sorted(fields.keys() - _FIELDS)}")
            found.append(Behaviour(identifier, section, **fields))
    return found


def identifiers_in(name: str, prefixes: set[str]) -> list[str]:
    """Return the identifiers after ``test_``: ``test_bpm1_bpm3_found`` → BPM1, BPM3. *prefixes*: bpm, ac, ..."""
    found = []
    for token in name.removeprefix("test_").split("_"):
        match = _TOKEN.fullmatch(token)
        if match is None or match[1] not in prefixes:
            break
        found.append(token.upper())
    return found


def find_tests(prefixes: set[str]) -> list[NamedTest]:
    """Return every test in tests/conformance/peer, and the tests in other folders of conformance with identifiers."""
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                identifiers = identifiers_in(node.name, prefixes)
                if identifiers or path.parent == PEER:
                    found.append(NamedTest(f"{path.relative_to(ROOT).as_posix()}::{node.name}", identifiers))
    return found


def faults_of(behaviours: list[Behaviour], tests: list[NamedTest]) -> list[str]:
    """Return the contradictions between behaviours and tests, one line each; [] if there are none."""
    known = {one.identifier for one in behaviours}
    shown = {identifier for test in tests for identifier in test.identifiers}
    faults = [f"{test.place} carries no identifier" for test in tests if not test.identifiers]
    faults += [
        f"{test.place} carries an unknown identifier, {identifier}"
        for test in tests
        for identifier in test.identifiers
        if identifier not in known
    ]
    for one in behaviours:
        if one.identifier in shown and (one.not_applicable or one.missing):
            faults.append(f"{one.identifier} has a test, and a reason why there is none")
        elif one.identifier not in shown and not (one.not_applicable or one.missing):
            faults.append(f"{one.identifier} has neither a test nor a reason")
    return faults


def page_of(behaviours: list[Behaviour], tests: list[NamedTest]) -> str:
    """Return the whole page as Markdown."""
    shown = sum(not (one.not_applicable or one.missing) for one in behaviours)
    absent = sum(bool(one.not_applicable) for one in behaviours)
    named = sum(bool(test.identifiers) for test in tests)
    missing = len(behaviours) - shown - absent
    counts = f"{len(behaviours)} behaviours: {shown} shown by {named} tests, {absent} do not apply, {missing} missing."
    lines = ["# Conformance", "", _INTRODUCTION, "", counts]
    section = ""
    for one in behaviours:
        if one.section != section:
            section = one.section
            lines += ["", f"## {section}", "", "| | behaviour | shown by |", "|---|---|---|"]
        lines.append(f"| {one.identifier} | {_behaviour(one)} | {_shown_by(one, tests)} |")
    return "\n".join([*lines, "", _VERSIONS]) + "\n"


def _behaviour(one: Behaviour) -> str:
    return f"{one.behaviour}. *Here: {one.note}.*" if one.note else one.behaviour


def _shown_by(one: Behaviour, tests: list[NamedTest]) -> str:
    if one.not_applicable:
        return f"does not apply: {one.not_applicable}"
    if one.missing:
        return f"**missing**: {one.missing}"
    places = [test.place for test in tests if one.identifier in test.identifiers]
    return "<br>".join(f"`{place.removeprefix('tests/conformance/')}`" for place in places)


def current_page() -> tuple[str, list[str], list[Behaviour]]:
    """Return the page, the contradictions, and the behaviours that lack a test."""
    behaviours = load_behaviours(BEHAVIOURS.read_text())
    prefixes = {re.sub(r"[0-9]+$", "", one.identifier).lower() for one in behaviours}
    tests = find_tests(prefixes)
    return page_of(behaviours, tests), faults_of(behaviours, tests), [one for one in behaviours if one.missing]


def main() -> int:
    """Write the page and print missing tests and contradictions. Return 1 if there are contradictions, otherwise 0."""
    page, faults, missing = current_page()
    PAGE.write_text(page)
    for one in missing:
        print(f"missing: {one.identifier}, {one.behaviour} ({one.missing})")
    for fault in faults:
        print(f"wrong: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
