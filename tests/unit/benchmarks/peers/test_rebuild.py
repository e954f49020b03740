"""Recovery times from a broker's log."""

from __future__ import annotations

import pytest

from benchmarks.peers.work.rebuild import recovery_seconds

LINE = (
    "2026-11-22 00:04:10 INFO main - message store recover total cost: 4067 ms, recoverConsumeQueue: 0 ms, "
    "recoverCommitLog: 4052 ms, recoverOffsetTable: 15 ms\n"
)


def test_the_recovery_time_is_read_from_the_brokers_log() -> None:
    """Loading of missing queue files and of the offset table does not count."""
    assert recovery_seconds(f"something else\n{LINE}and more\n") == 4.052


def test_a_broker_log_without_the_recovery_line_is_an_error() -> None:
    """A broker that logs it in another form gives no figure."""
    with pytest.raises(ValueError, match="does not say"):
        recovery_seconds("message store recover end")
