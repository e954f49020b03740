"""Runs `benchmarks.spark_job` and reads its answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MESSAGES = 5_000_000  # of 1 KiB, at scale 1
TRIGGERS, TRIGGER_MESSAGES = 60, 4000
_TIMEOUT_S = 1800.0


def spark_run(
    source: str, options: dict[str, str], *, columns: str = "", jars: Sequence[Path] = (), triggers: int = 0
) -> dict[str, float]:
    """Run the job and return its figures. Raises CalledProcessError if it fails."""
    job = {"format": source, "options": options, "columns": columns, "triggers": triggers}
    command = [sys.executable, "-m", "benchmarks.spark_job", json.dumps({**job, "jars": [str(jar) for jar in jars]})]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=_TIMEOUT_S, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
