"""`python -m services.indexer.healthcheck`: exit status 0 while every shard of the pipeline has a follower."""

from __future__ import annotations

import sys

from .pipeline.config import PipelineSettings
from .pipeline.hand_over import is_followed
from .pipeline.plan import make_plan


def main() -> int:
    """Asks the locks themselves: whoever follows a shard holds its lock, and a dead process holds none."""
    plan = make_plan(PipelineSettings())
    if not plan.lock_path(0).exists():
        sys.stderr.write("the pipeline has not started yet\n")
        return 1
    alone = [shard for shard in range(plan.tasks) if not is_followed(plan, shard)]
    if alone:
        sys.stderr.write(f"nobody follows shards {alone}\n")
    return 1 if alone else 0


if __name__ == "__main__":
    sys.exit(main())
