"""Facts that `status` reports as problems."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tidemark.cli.health.durations import duration_text
from tidemark.cli.health.status_problems import HealthLimits, problems_of
from tidemark.cli.health.status_screen import screen
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.cli.terminal.output import console
from tidemark.cli.verbs.status import exit_status

NOW_MS = 1_700_000_000_000
LIMITS = HealthLimits(max_behind_s=60, min_disk_hours=24)
DAMAGE = {"physical_offset": 7, "reason": "BODY_CRC", "found_ms": NOW_MS}
HEALTHY: dict[str, Any] = {
    "query": {"url": "http://q", "answers": True, "problem": None},
    "writer": {
        "address": "w:1",
        "answers": True,
        "problem": None,
        "flush_mode": "sync",
        "free_disk_bytes": 100,
        "min_free_disk_bytes": 100,
    },
    "pipeline": {"answers": True, "quiet_ms": 3},
    "store": {
        "store": "tidemark-0",
        "version": "1",
        "attached": False,
        "watermark": {"term": 1, "physical_offset": 900, "published_ms": NOW_MS},
        "committed_offset": 1000,
        "lag_bytes": 100,
        "log": {"min_physical_offset": 0, "files": 1, "file_size_bytes": 4096, "growth": None},
        "writer": {"last_append_ms": None},
        "pipeline": {"behind_since_ms": NOW_MS - 60_000},
        "corruptions": 0,
        "newest_corruption": None,
        "topics": 1,
        "disk": {"free_bytes": 5, "total_bytes": 10, "full_in_s": 24 * 3600},
        "groups": {"count": 0, "most_lag": []},
    },
}


GROUP = {"role": "writer", "writer": "a", "in_sync": ["a"], "eligible": ["b"], "min_in_sync": 2}


def changed(path: str, value: object) -> dict[str, Any]:
    """Return HEALTHY with one fact changed."""
    seen = copy.deepcopy(HEALTHY)
    *folders, name = path.split(".")
    place = seen
    for folder in folders:
        place = place[folder]
    place[name] = value
    return seen


def test_facts_at_their_limits_are_not_problems() -> None:
    """Unknown facts are no problem."""
    assert problems_of(HEALTHY, LIMITS, now_ms=NOW_MS) == []
    assert problems_of(changed("store.disk.full_in_s", None), LIMITS, now_ms=NOW_MS) == []


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("writer.answers", False, "the writer does not answer"),
        ("query.answers", False, "the query does not answer"),
        ("pipeline.answers", False, "the pipeline does not run"),
        ("writer.free_disk_bytes", 99, "appends are refused"),
        ("store.pipeline.behind_since_ms", NOW_MS - 60_001, "100 bytes behind"),
        ("store.replication", GROUP, "appends are refused: 1 members of the group are in sync (a), and 2 are needed"),
        ("store.disk.full_in_s", 24 * 3600 - 1, "the disk is full in 23 h"),
    ],
)
def test_each_fact_beyond_its_limit_is_one_problem(path: str, value: object, told: str) -> None:
    """One line names the fact."""
    (problem,) = problems_of(changed(path, value), LIMITS, now_ms=NOW_MS)
    assert told in problem


def test_a_service_that_refuses_the_token_is_reported_as_refusing() -> None:
    """A refusal differs from no answer; each problem has its own line."""
    seen = changed("query.answers", False)
    seen["query"] |= {"refuses": True, "problem": "a token is needed"}
    seen["writer"] |= {"answers": False, "refuses": True, "problem": "the token has expired"}
    problems = problems_of(seen, LIMITS, now_ms=NOW_MS)
    assert problems == [
        "the writer refuses the request: the token has expired",
        "the query refuses the request: a token is needed",
    ]
    shown = console()
    with shown.capture() as captured:
        shown.print(screen({"healthy": False, "problems": problems, **seen}))
    assert [line.removeprefix("problems").strip() for line in captured.get().splitlines()[1:3]] == problems
    assert exit_status({"healthy": False, **seen, "pipeline": {"answers": False}}) is ExitStatus.FAILED


def test_damage_is_a_problem() -> None:
    """The problem names the newest position."""
    seen = changed("store.corruptions", 2)
    seen["store"]["newest_corruption"] = DAMAGE
    (problem,) = problems_of(seen, LIMITS, now_ms=NOW_MS)
    assert problem == "damaged places: 2, the newest at 7 (BODY_CRC)"


@pytest.mark.parametrize("path", ["", "store.groups.most_lag", "store.newest_corruption", "store.log.growth"])
def test_the_screen_shows_known_and_missing_facts(path: str) -> None:
    """Every fact may be missing."""
    values: dict[str, object] = {
        "store.groups.most_lag": None,
        "store.newest_corruption": DAMAGE,
        "store.log.growth": {"size_bytes": 9, "since_ms": 0, "until_ms": 7_200_000, "bytes_per_s": 2e6},
    }
    seen = changed(path, values[path]) if path else HEALTHY
    shown = console()
    with shown.capture() as captured:
        shown.print(screen({"healthy": True, "problems": [], **seen}))
    expected = {
        "": "last append unknown",
        "store.groups.most_lag": "their lag is unknown",
        "store.newest_corruption": "BODY_CRC at 7",
        "store.log.growth": "full in 24 h, if nothing is deleted (log: 2.000 MB/s over the last 2 h)",
    }
    assert expected[path] in captured.get()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (1.26, "1.3 s"), (119, "119 s"), (120, "2 min"), (2 * 86_400, "2 days"), (1e9, "31 years")],
)
def test_durations_are_shown_in_a_fitting_unit(seconds: float, text: str) -> None:
    """The unit is the largest one of which the span has at least two."""
    assert duration_text(seconds) == text
