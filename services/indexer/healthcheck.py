"""`python -m services.indexer.healthcheck`: exit status 0 while every shard of the pipeline has a follower."""

from __future__ import annotations

import sys
import time

from tidemark.store.marks import Marks

from .pipeline.config import PipelineSettings
from .pipeline.hand_over import is_followed
from .pipeline.plan import EpochPlan, make_plan

_LONGEST_QUIET_MS = 10_000
_LONGEST_HAND_OVER_S = 2.0
_LOOK_AGAIN_S = 0.02


def main() -> int:
    """Asks when a task was there last, and the locks: whoever follows a shard holds its lock, a dead process none.

    Tasks that only drain (epoch_ms 0) hold no lock for long, and a pipeline that only prepares holds them all.
    """
    plan = make_plan(PipelineSettings())
    if not plan.paths.marks.exists():
        sys.stderr.write("the pipeline has not started yet\n")
        return 1
    if not _was_there_lately(plan):
        return 1
    if plan.epoch_ms == 0:
        return 0
    alone = _without_follower(plan)
    if alone:
        sys.stderr.write(f"nobody follows shards {alone}\n")
    return 1 if alone else 0


def _without_follower(plan: EpochPlan) -> list[int]:
    """The shards that nobody takes within the time of a hand-over, in which a shard has no holder for a moment."""
    give_up = time.monotonic() + _LONGEST_HAND_OVER_S
    alone = list(range(plan.all_shards))
    while alone := [shard for shard in alone if not is_followed(plan, shard)]:
        if time.monotonic() > give_up:
            break
        time.sleep(_LOOK_AGAIN_S)
    return alone


def _was_there_lately(plan: EpochPlan) -> bool:
    marks = Marks.open_read_only(plan.paths.marks)
    quiet_ms = time.time_ns() // 1_000_000 - marks.alive_ms
    if quiet_ms > _LONGEST_QUIET_MS:
        sys.stderr.write("no task is there\n")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
