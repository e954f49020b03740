from __future__ import annotations

import pytest

from tests.fixed_ports import fixed_port
from tidemark.cli.health.doctor_group import group_check, group_finding
from tidemark.cli.health.finding import Level
from tidemark.client.wire.group_admin import GroupMember, GroupStatus


def member(name: str, role: str = "replica", *, is_in_sync: bool = True) -> GroupMember:
    return GroupMember(name, f"{name}:8081", role, is_in_sync, 9, 9, 9, 0, 0.0, 1)


WRITER, B, C = member("a", "writer"), member("b"), member("c")
AWAY = member("c", "unreachable", is_in_sync=False)


def status(*members: GroupMember, writer: str | None = "a", mode: str = "sync", min_in_sync: int = 2) -> GroupStatus:
    return GroupStatus("store", mode, "orders", 1, writer, min_in_sync, members)


@pytest.mark.parametrize(
    ("seen", "level", "text"),
    [
        (status(WRITER, B, C), Level.OK, "orders: writer a, 3 of 3 members in sync, 2 needed"),
        (status(B, C, member("a", "unreachable"), writer=None), Level.FAIL, "writer none"),
        (status(WRITER, AWAY, member("b", is_in_sync=False)), Level.FAIL, "appends are refused"),
        (status(WRITER, B, AWAY), Level.WARN, "c missing or behind"),
        (status(WRITER, B), Level.WARN, "the loss of any member stops appends"),
        (status(WRITER, B, mode="async"), Level.OK, "2 of 2"),
    ],
)
def test_a_group_is_judged_by_what_it_can_lose(seen: GroupStatus, level: Level, text: str) -> None:
    finding = group_finding(seen)
    assert finding.level is level
    assert text in finding.text
    assert bool(finding.next_step) == (level is not Level.OK)


def test_a_free_port_has_no_group() -> None:
    assert group_check(f"127.0.0.1:{fixed_port()}") is None
