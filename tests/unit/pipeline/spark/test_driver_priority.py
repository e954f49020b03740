"""The lower priority of Spark's JVM compared to the followers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from services.indexer.pipeline.spark.driver_priority import step_back

PROGRAM = """
import sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
print("started", flush=True)
sys.stdin.readline()
later = threading.Thread(target=threading.Event().wait, daemon=True)
later.start()
print("started", flush=True)
sys.stdin.readline()
"""


def test_step_back_lowers_the_priority_of_current_and_later_threads() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        mine = os.getpriority(os.PRIO_PROCESS, 0)
        step_back(process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        threads = [int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()]
        assert len(threads) == 3
        assert {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads} == {min(mine + 10, 19)}
        process.stdin.write(b"\n")


def test_step_back_of_an_exited_process_is_not_an_error() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    step_back(process.pid)
