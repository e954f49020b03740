"""One hand-over at a time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.writer.replication.hand_over import HandOver
from tidemark.errors import ArgumentIllegalError, DeadlineExceededError


async def nothing(*_: Any) -> None:
    return


def test_a_second_hand_over_is_refused_and_leaves_the_first_alone() -> None:
    asyncio.run(_hand_over_twice())


async def _hand_over_twice() -> None:
    behind, other = (
        cast(Any, SimpleNamespace(member=name, acknowledged=SimpleNamespace(end=0), is_ended=False)) for name in "bc"
    )
    commits = cast(Any, SimpleNamespace(committed=0))
    hand_over = HandOver(
        commits, cast(Any, None), end=lambda: 100, share_files=nothing, release_to=nothing, on_done=lambda: None
    )
    first = asyncio.create_task(hand_over.to(behind, "b:8081", lambda: 0))
    await asyncio.sleep(0)
    with pytest.raises(ArgumentIllegalError, match="hands over its role to b:8081 already"):
        await hand_over.to(other, "c:8081", lambda: 0)
    assert hand_over.successor == "b:8081"  # appends are still refused

    behind.is_ended = True
    with pytest.raises(DeadlineExceededError):
        await first
    assert hand_over.successor is None
