"""The list of threats is current, and the tests that it names exist."""

from __future__ import annotations

import pytest

from scripts.threats_list import PAGE, Threat, is_there, threats, with_list


def test_the_list_in_security_is_current() -> None:
    """`make docs` writes the list."""
    page = PAGE.read_text()
    assert page == with_list(page)


@pytest.mark.parametrize("threat", threats(), ids=lambda threat: threat.threat)
def test_every_threat_names_existing_tests(threat: Threat) -> None:
    """Each names at least one, and no renamed test."""
    assert threat.tests
    assert [test for test in threat.tests if not is_there(test)] == []


@pytest.mark.parametrize("test", ["tests/none.py::test_x", f"{__file__}::test_none", f"{__file__}::Threat"])
def test_a_missing_test_is_recognised(test: str) -> None:
    assert not is_there(test)
