"""Health checks as containers run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "tidemark" / "healthcheck.py"


def run_alone(*arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run an interpreter without site-packages, outside the project. *settings* lack their prefix."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    given = {f"TIDEMARK_{name.upper()}": str(value) for name, value in settings.items()}
    return subprocess.run(
        [sys.executable, "-I", "-S", *arguments],
        env=inherited | given,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def check_health(service: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run the check of *service*."""
    return run_alone(str(SCRIPT), service, **settings)


def is_healthy(service: str, **settings: object) -> bool:
    """Return True if the check's exit status says so."""
    return check_health(service, **settings).returncode == 0
