"""Writes docs/conformance.md: where Tidemark differs from the behaviours that RocketMQ's own tests assert. `make docs`.

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
_AS = re.compile(r"as ([A-Z]+[0-9]+)")
_INTRODUCTION = (
    "Apache RocketMQ's own tests (apache/rocketmq at 8fc57f14, 5.3.4-SNAPSHOT) assert the behaviours that "
    "`tests/conformance/peer/behaviours.toml` lists.\n"
    "A test's name begins with those that it shows: `pytest tests/conformance/peer -k bcq9`.\n"
    "`make docs` writes this page."
)
_VERSIONS = (
    "## The real broker\n"
    "\n"
    "`make conformance` runs `tests/conformance/broker` with brokers of RocketMQ 5.3.3 and 5.5.1 from Maven Central; "
    "`CONFORMANCE_BROKERS` names others, separated by commas.\n"
    "Modules that Maven Central lacks in 5.5.1, such as name server and client, are of 5.5.0.\n"
    "\n"
    "On a shared directory 5.5.1 must keep its defaults:\n"
    "\n"
    "- no RocksDB: `indexRocksDBEnable`, `transRocksDBEnable`, `timerRocksDBEnable`, `storeType=defaultRocksDB` and "
    "the combined ConsumeQueue store are off, because Tidemark uses only files;\n"
    "- index files: `indexFileWriteEnable` and `indexFileReadEnable` are on.\n"
    "\n"
    "After a kill 5.3.3 dispatches the whole log again, 5.5.1 at most `commitLogRecoverMaxNum` (10) files.\n"
    "The tests set 1,000,000, so that a broker that takes over from a killed Tidemark dispatches all of it.\n"
    "After `tidemark store hand-back` nothing is dispatched again."
)
_DESCRIBED = 2  # behaviours that do not apply, for one reason, and are described on the page
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
    absent = [one for one in behaviours if one.not_applicable]
    missing = [one for one in behaviours if one.missing]
    different = [one for one in behaviours if one.note]
    shown = len(behaviours) - len(absent) - len(missing)
    named = sum(bool(test.identifiers) for test in tests)
    counts = (
        f"{len(behaviours)} behaviours: {shown} shown by {named} tests, {len(different)} of them with an intended "
        f"difference; {len(absent)} not applicable, {len(missing)} missing."
    )
    lines = ["# Conformance", "", _INTRODUCTION, "", counts, "", "## Intended differences", ""]
    lines += [f"- {one.section}, **{one.identifier}** {one.behaviour}. *Here*: {one.note}." for one in different]
    if missing:
        lines += ["", "## Missing", "", *(f"- **{one.identifier}** {one.behaviour}: {one.missing}." for one in missing)]
    lines += ["", "## Not applicable", "", *_not_applicable(absent)]
    return "\n".join([*lines, "", _VERSIONS]) + "\n"


def _not_applicable(absent: list[Behaviour]) -> list[str]:
    """Return one line for each reason, with its behaviours. The reason "as HA1" is that of HA1."""
    groups: dict[str, list[Behaviour]] = {}
    for one in absent:
        match = _AS.fullmatch(one.not_applicable)
        groups.setdefault(match[1] if match else one.identifier, []).append(one)
    reasons = {one.identifier: one.not_applicable for one in absent}
    return [
        f"- {', '.join(dict.fromkeys(one.section for one in group))}: {reasons[name]}. {_described(group)}."
        for name, group in groups.items()
    ]


def _described(group: list[Behaviour]) -> str:
    """Return identifiers with behaviours; of a large group the identifiers only, because its reason covers them."""
    if len(group) > _DESCRIBED:
        return ", ".join(f"**{one.identifier}**" for one in group)
    return "; ".join(f"**{one.identifier}** {one.behaviour}" for one in group)


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
