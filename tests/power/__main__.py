"""`python -m tests.power`: cut the power under the real services, in each flush mode on each file system.

POWER_CYCLES (20) is the number of cuts of each combination, POWER_SEED repeats the choices, POWER_WINDOW_S (1.5) is the
age from which `async` may not lose a message: its flush interval of 0.5 s, and the time that a flush takes. The exit
status is 1 if a promise was broken.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.power.disk import FILE_SYSTEMS, missing_for
from tests.power.judge import ASYNC, SYNC
from tests.power.run import PowerTest


def main() -> int:
    """Run every combination that this machine can run, and return the exit status."""
    cycles = int(os.environ.get("POWER_CYCLES") or 20)
    seed = os.environ.get("POWER_SEED") or secrets.token_hex(4)
    window_s = float(os.environ.get("POWER_WINDOW_S") or 1.5)
    print(f"seed             {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="tidemark-power-"))
    violations = ran = 0
    for file_system in FILE_SYSTEMS:
        reason = missing_for(file_system, folder)
        if reason is not None:
            print(f"SKIPPED          {file_system}: {reason}", flush=True)
            continue
        for mode in (SYNC, ASYNC):
            print(f"{mode} on {file_system}, {cycles} cuts", flush=True)
            found = _run(folder / f"{file_system}-{mode}", file_system, mode, seed, window_s, cycles)
            ran += 1
            violations += len(found)
    print(f"verdict          {'FAILED' if violations else 'passed' if ran else 'SKIPPED'}: {violations} violations")
    if violations:
        print(f"kept             {folder}: the logs of each start; same choices: POWER_SEED={seed}")
    else:
        shutil.rmtree(folder)
    return 1 if violations else 0


def _run(folder: Path, file_system: str, mode: str, seed: str, window_s: float, cycles: int) -> list[str]:
    folder.mkdir()
    test = PowerTest(folder, file_system, mode, seed, window_s, lambda line: print(line, flush=True))
    found = test.run(cycles)
    for text in found:
        print(f"VIOLATION        {mode} on {file_system}: {text}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
