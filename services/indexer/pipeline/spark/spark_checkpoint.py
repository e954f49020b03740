"""The checkpoint of Spark's queries: each start of the pipeline begins with an empty one.

An epoch begins at its shard's mark, so the checkpoint has no effect on results. Spark does not sync it: after a power
cut its files may be empty, and a query would refuse to start from them.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path

from ..plan import EpochPlan


def new_checkpoint(plan: EpochPlan) -> Path:
    """Remove the checkpoints of earlier starts, sound or damaged, and return a folder that does not exist yet."""
    folder = plan.paths.indexer / "spark"
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # a file in the folder's place
        folder.unlink()
    return folder / f"{time.time_ns()}"
