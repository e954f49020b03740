"""The list of known failures in docs/guarantees.md matches the tests and has all 29 entries."""

from __future__ import annotations

from scripts.known_failures_table import PAGE, known_failures, with_list


def test_the_list_of_known_failures_is_current() -> None:
    """`make docs` writes the list."""
    page = PAGE.read_text()
    assert page == with_list(page)
    assert "https://github.com/apache/rocketmq/issues/10017" in page


def test_each_of_the_29_known_failures_has_a_test() -> None:
    """They have the numbers 1 to 29."""
    assert {failure.number for failure in known_failures()} == set(range(1, 30))
