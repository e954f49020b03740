"""Health checks as containers run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "tidemark" / "healthcheck.py"
ALONE = [sys.executable, "-I", "-S"]


def check_health(service: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run the check of *service* with these settings, in the environment's names without their prefix."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    given = {f"TIDEMARK_{name.upper()}": str(value) for name, value in settings.items()}
    return subprocess.run(
        [*ALONE, str(SCRIPT), service],
        env=inherited | given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def is_healthy(service: str, **settings: object) -> bool:
    """Return True if the check's exit status says so."""
    return check_health(service, **settings).returncode == 0
