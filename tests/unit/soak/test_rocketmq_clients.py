from __future__ import annotations

import pytest

from tests.soak.rocketmq_clients import judge

SENT = ["m-0", "m-1", "m-2"]


@pytest.mark.parametrize(
    ("acknowledged", "stored", "received", "rules"),
    [
        (SENT, SENT, SENT, []),
        (SENT[:2], SENT, SENT, []),  # the answer to the last one was lost
        (SENT, SENT, [*SENT, "m-1"], []),  # at least once
        (SENT, SENT[:2], SENT[:2], ["lost"]),
        (SENT, [*SENT, "m-1"], SENT, ["doubled"]),
        (SENT, SENT, SENT[1:], ["never handed out"]),
        (SENT, SENT, [*SENT, "m-3"], ["invented"]),
        (SENT, [], SENT[:1], ["lost", "lost", "lost", "invented"]),
    ],
)
def test_each_broken_promise_is_reported(
    acknowledged: list[str], stored: list[str], received: list[str], rules: list[str]
) -> None:
    assert [rule for rule, _ in judge(acknowledged, stored, received)] == rules
