"""`python -m tests.soak`: soak the real services and judge the clients' observations.

`python -m tests.soak FOLDER` judges the kept history of a run again. SOAK_SECONDS (default 180) is the duration,
SOAK_SEED repeats the choices of a run, SOAK_FAULTS=off leaves the processes alone, SOAK_JAVA=off leaves out RocketMQ's
Java client, and SOAK_MUTATION puts a fault into the clients. The folder of a failed run is kept, and its path printed.
The exit status is 1 if a rule was violated.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.soak.checker import check
from tests.soak.facts import Violation
from tests.soak.history import read_histories
from tests.soak.run import run


def main(arguments: list[str]) -> int:
    """Run or judge a soak, and return the exit status."""
    if arguments:
        return _report(check(read_histories(Path(arguments[0]))))
    seconds = float(os.environ.get("SOAK_SECONDS") or 180)
    seed = os.environ.get("SOAK_SEED") or secrets.token_hex(4)
    print(f"seed             {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="tidemark-soak-"))
    try:
        faults = os.environ.get("SOAK_FAULTS", "on") != "off"
        has_java = os.environ.get("SOAK_JAVA", "on") != "off"
        say = partial(print, flush=True)
        violations = run(folder, seconds, seed, say, faults=faults, has_java=has_java)
    except BaseException:
        print(f"kept             {folder}", flush=True)
        raise
    status = _report(violations)
    if violations:
        print(f"kept             {folder}; judge again: python -m tests.soak {folder}; same choices: SOAK_SEED={seed}")
    else:
        shutil.rmtree(folder)
    return status


def _report(violations: list[Violation]) -> int:
    for rule, text in violations:
        print(f"VIOLATION        {rule}: {text}")
    print(f"violations       {len(violations) or 'none'}")
    print(f"verdict          {'FAILED' if violations else 'passed'}", flush=True)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
