from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.writer.config import WriterSettings

GROUP = {"replication": "sync", "member": "a", "group_members": "a=10.0.0.1:8081, b=tls://b.example:8081"}


def test_members_are_read_by_name() -> None:
    settings = WriterSettings(**GROUP)  # type: ignore[arg-type]
    assert settings.members == {"a": "10.0.0.1:8081", "b": "tls://b.example:8081"}
    assert settings.is_replicated
    assert not WriterSettings().is_replicated


WRONG: dict[str, dict[str, object]] = {
    "an unknown member": {"member": "c"},
    "no member": {"member": ""},
    "no members": {"group_members": ""},
    "an entry without an address": {"group_members": "a"},
    "an address without a port": {"group_members": "a=10.0.0.1"},
    "a name twice": {"group_members": "a=h:1,a=h:2"},
    "a name with a dot": {"group_members": "a.b=h:1"},
    "a flush that replicas do not see": {"flush_mode": "async"},
    "more in sync than members": {"min_in_sync": 3},
    "an unknown mode": {"replication": "quorum"},
}


@pytest.mark.parametrize("case", WRONG)
def test_settings_that_contradict_each_other_are_refused(case: str) -> None:
    with pytest.raises(ValidationError):
        WriterSettings(**{**GROUP, **WRONG[case]})  # type: ignore[arg-type]


def test_async_replication_may_be_combined_with_async_flushes() -> None:
    assert WriterSettings(**{**GROUP, "replication": "async", "flush_mode": "async"})  # type: ignore[arg-type]
