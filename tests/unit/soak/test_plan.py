"""The plan of failing messages covers every outcome of a handler."""

from __future__ import annotations

from tests.soak.groups.plan import MAX_ATTEMPTS, failing_attempts
from tests.soak.messages import named


def test_a_hundred_messages_or_so_fail_never_once_twice_and_always() -> None:
    planned = {failing_attempts(named(f"stream-1-{number}").content) for number in range(500)}
    assert planned == set(range(MAX_ATTEMPTS + 1))
