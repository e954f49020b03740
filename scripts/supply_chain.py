"""What is delivered with us: an SBOM of requirements.lock, licences, and known faults of what is locked.

Exit status: 0; 1 when a licence is not allowed or a locked version has a known fault; 2 with --strict when nobody could
be asked about faults. Without --strict that is said, and fails nothing: a machine without a way out checks the rest.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from scripts import licences
from scripts.lock import LOCK, ROOT

SBOM = ROOT / "build" / "sbom.cdx.json"
ADVISORIES = ("api.osv.dev", 443)
_REACHED_WITHIN_S = 10


def write_sbom(target: Path) -> int:
    """CycloneDX 1.6, the same bytes for the same lock: no time, no serial number."""
    target.parent.mkdir(parents=True, exist_ok=True)
    arguments = ["requirements", str(LOCK), "--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"]
    status = _run("cyclonedx_py", *arguments, "--output-file", str(target))
    if status == 0:
        print(f"SBOM: {target.relative_to(ROOT) if target.is_relative_to(ROOT) else target}")
    return status


def check_faults(*, strict: bool) -> int:
    """Ask the advisories of OSV about every locked version."""
    try:
        socket.create_connection(ADVISORIES, timeout=_REACHED_WITHIN_S).close()
    except OSError as error:
        print(f"known faults: NOT CHECKED, {ADVISORIES[0]} cannot be reached from here ({error})")
        return 2 if strict else 0
    return _run("pip_audit", "--requirement", str(LOCK), "--disable-pip", "--no-deps", "--vulnerability-service", "osv")


def _run(module: str, *arguments: str) -> int:
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - our own tools


def main() -> int:
    """All of it, whatever fails first."""
    wrong = write_sbom(SBOM) | licences.check()
    faults = check_faults(strict="--strict" in sys.argv[1:])
    return 1 if wrong else faults


if __name__ == "__main__":
    sys.exit(main())
