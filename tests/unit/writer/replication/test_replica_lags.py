"""Lags of replicas: measured from the first end of the log that a member has not synced."""

from __future__ import annotations

from services.writer.replication.replica_lags import ReplicaLags


def test_a_member_is_behind_since_the_log_grew_beyond_it() -> None:
    lags = ReplicaLags(10)
    for now_s, end in ((1, 100), (2, 100), (3, 250), (4, 300)):
        lags.note_end(end, now_s=now_s)
    assert lags.seconds(300, now_s=5) == 0
    assert lags.seconds(100, now_s=5) == 2
    assert lags.seconds(0, now_s=5) == 4


def test_a_long_lag_is_shown_as_longer_than_the_allowed_one() -> None:
    lags = ReplicaLags(3)
    for now_s in range(100):
        lags.note_end(100, now_s=now_s)
    assert 3 < lags.seconds(0, now_s=100) <= 5
