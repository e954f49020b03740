"""docs/conformance.md follows from behaviours.toml and the names of tests; each behaviour has a test or a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import conformance_table
from scripts.conformance_table import (
    PAGE,
    Behaviour,
    NamedTest,
    current_page,
    faults_of,
    find_tests,
    identifiers_in,
    load_behaviours,
    page_of,
)


def test_the_page_is_current_and_every_behaviour_has_a_test_or_a_reason() -> None:
    """`make docs` writes the page."""
    page, faults, _ = current_page()
    assert faults == []
    assert PAGE.read_text() == page
    assert "**AC1** " in page


def test_identifiers_directly_follow_the_test_prefix() -> None:
    """They end at the first word that is not one; words of that form count only with a known prefix."""
    prefixes = {"bpm", "ac"}
    assert identifiers_in("test_bpm1_ac12_found_in_ipv6_bpm3", prefixes) == ["BPM1", "AC12"]
    assert identifiers_in("test_ipv6_bpm1", prefixes) == []


def test_a_behaviour_without_test_or_reason_is_reported() -> None:
    """Errors are also a test with no or an unknown identifier, and a behaviour with both a test and a reason."""
    behaviours = load_behaviours(
        '[Class]\nA1 = "one"\nA2 = "two"\n'
        'A3 = { behaviour = "three", not_applicable = "no" }\nA4 = { behaviour = "four", missing = "yet" }\n'
    )
    assert behaviours[2] == Behaviour("A3", "Class", "three", not_applicable="no")
    tests = [NamedTest("f::test_a1_x", ["A1"]), NamedTest("f::test_a9_x", ["A9"]), NamedTest("f::test_x", [])]
    assert faults_of(behaviours, tests) == [
        "f::test_x carries no identifier",
        "f::test_a9_x carries an unknown identifier, A9",
        "A2 has neither a test nor a reason",
    ]
    beside = [NamedTest("f::test_a1_a2_a4_x", ["A1", "A2", "A4"])]
    assert faults_of(behaviours, beside) == ["A4 has a test, and a reason why there is none"]
    with pytest.raises(ValueError, match="sure"):
        load_behaviours('[Class]\nA1 = { behaviour = "one", sure = true }\n')


def test_behaviours_that_do_not_apply_are_grouped_by_reason() -> None:
    """The reason "as B1" is that of B1, in any section."""
    page = page_of(
        load_behaviours(
            '[First]\nA1 = "one"\n[Second]\nB1 = { behaviour = "two", not_applicable = "no such file" }\n'
            '[Third]\nC1 = { behaviour = "three", not_applicable = "as B1" }\n'
        ),
        [NamedTest("tests/conformance/f::test_a1_x", ["A1"])],
    )
    assert "- Second, Third: no such file. **B1** two; **C1** three.\n" in page


def test_many_behaviours_that_do_not_apply_are_only_named() -> None:
    page = page_of(
        load_behaviours(
            '[First]\nA1 = { behaviour = "one", not_applicable = "no such file" }\n'
            'A2 = { behaviour = "two", not_applicable = "as A1" }\n'
            'A3 = { behaviour = "three", not_applicable = "as A1" }\n'
        ),
        [],
    )
    assert "- First: no such file. **A1**, **A2**, **A3**.\n" in page


def test_the_page_has_counts_differences_and_missing_tests() -> None:
    page = page_of(
        load_behaviours(
            '[First]\nA1 = "one"\nA2 = { behaviour = "two", note = "three" }\n'
            '[Second]\nB1 = { behaviour = "four", missing = "a test to be written" }\n'
        ),
        [NamedTest("tests/conformance/f::test_a1_a2_x", ["A1", "A2"])],
    )
    assert (
        "\n3 behaviours: 2 shown by 1 tests, 1 of them with an intended difference; 0 not applicable, 1 missing.\n"
        in page
    )
    assert "\n## Intended differences\n\n- First, **A2** two. *Here*: three.\n" in page
    assert "\n## Missing\n\n- **B1** four: a test to be written.\n" in page
    assert "**A1**" not in page


def test_conformance_tests_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of tests/conformance/peer only tests with identifiers count."""
    folder = tmp_path / "tests" / "conformance"
    (folder / "peer").mkdir(parents=True)
    (folder / "peer" / "test_a.py").write_text("def test_a1_x(): ...\ndef test_x(): ...\ndef helper(): ...\n")
    (folder / "test_b.py").write_text("def test_a2_x(): ...\ndef test_y(): ...\n")
    monkeypatch.setattr(conformance_table, "ROOT", tmp_path)
    monkeypatch.setattr(conformance_table, "TESTS", folder)
    monkeypatch.setattr(conformance_table, "PEER", folder / "peer")
    assert find_tests({"a"}) == [
        NamedTest("tests/conformance/peer/test_a.py::test_a1_x", ["A1"]),
        NamedTest("tests/conformance/peer/test_a.py::test_x", []),
        NamedTest("tests/conformance/test_b.py::test_a2_x", ["A2"]),
    ]
