"""The plan of failing messages covers every outcome of a handler."""

from __future__ import annotations

from tests.soak.groups.plan import MAX_ATTEMPTS, failing_attempts
from tests.soak.messages import named


def test_planned_messages_cover_every_number_of_failures() -> None:
    planned = {failing_attempts(named(f"stream-1-{number}").content) for number in range(500)}
    assert planned == set(range(MAX_ATTEMPTS + 1))
