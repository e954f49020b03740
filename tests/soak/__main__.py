"""`python -m tests.soak`: soak the real services and judge what clients saw. `python -m tests.soak FOLDER`: judge again
what a run has kept there.

SOAK_SECONDS (default 180) says for how long, SOAK_SEED repeats the choices of a run; the folder of a run that failed is
kept and told. Exit status 1 for violations.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.soak.checker import check
from tests.soak.facts import Violation
from tests.soak.history import read_history
from tests.soak.run import HISTORY, run


def main(arguments: list[str]) -> int:
    """Exit status."""
    if arguments:
        return _tell(check(read_history(Path(arguments[0]) / HISTORY)))
    seconds = float(os.environ.get("SOAK_SECONDS") or 180)
    seed = os.environ.get("SOAK_SEED") or secrets.token_hex(4)
    print(f"seed             {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="tidemark-soak-"))
    try:
        violations = run(folder, seconds, seed, lambda line: print(line, flush=True))
    except BaseException:
        print(f"kept             {folder}", flush=True)
        raise
    status = _tell(violations)
    if violations:
        print(f"kept             {folder}; judge again: python -m tests.soak {folder}; same choices: SOAK_SEED={seed}")
    else:
        shutil.rmtree(folder)
    return status


def _tell(violations: list[Violation]) -> int:
    for rule, text in violations:
        print(f"VIOLATION        {rule}: {text}")
    print(f"violations       {len(violations) or 'none'}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
