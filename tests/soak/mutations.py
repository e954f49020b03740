"""`python -m tests.soak.mutations`: require that the judge reports each fault of `tests.soak.groups.mutations`.

SOAK_SECONDS (default 40) is the duration of each soak. The services are left alone, so that only the client's fault
explains a violation. The exit status is 1 if the judge misses a fault.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.soak.facts import Violation
from tests.soak.groups.mutations import MUTATIONS
from tests.soak.run import run

_SEED = "mutations"
_NONE = "none"


def main() -> int:
    """Soak without a mutation and with each, and return the exit status."""
    seconds = float(os.environ.get("SOAK_SECONDS") or 40)
    known = {violation.rule for violation in _soak("", seconds)}
    print(f"{_NONE:16} {', '.join(sorted(known)) or 'no violation'}", flush=True)
    is_right = not known
    for name, mutation in MUTATIONS.items():
        rules = {violation.rule for violation in _soak(name, seconds)}
        noticed = bool(rules & mutation.rules)
        print(f"{name:16} {'detected' if noticed else 'MISSED'}: {', '.join(sorted(rules))}", flush=True)
        is_right &= noticed
    print(f"verdict          {'passed' if is_right else 'FAILED'}")
    return 0 if is_right else 1


def _soak(mutation: str, seconds: float) -> list[Violation]:
    os.environ["SOAK_MUTATION"] = mutation
    folder = Path(tempfile.mkdtemp(prefix="tidemark-soak-"))
    try:
        return run(folder, seconds, _SEED, lambda _: None, faults=False)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
