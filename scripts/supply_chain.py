"""Checks the supply chain: writes an SBOM of requirements.lock, and checks licences and known vulnerabilities.

Exit status: 0; 1 if a licence is not allowed or a locked version has a known vulnerability; 2 with --strict if the
vulnerability database is unreachable. Without --strict that is only printed, so that offline machines check the rest.
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
    """Write a CycloneDX 1.6 SBOM. Equal locks give equal bytes: there is no time and no serial number."""
    target.parent.mkdir(parents=True, exist_ok=True)
    arguments = ["requirements", str(LOCK), "--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"]
    status = _run("cyclonedx_py", *arguments, "--output-file", str(target))
    if status == 0:
        print(f"SBOM: {target.relative_to(ROOT) if target.is_relative_to(ROOT) else target}")
    return status


def check_faults(*, strict: bool) -> int:
    """Check every locked version for vulnerabilities in the OSV database."""
    try:
        socket.create_connection(ADVISORIES, timeout=_REACHED_WITHIN_S).close()
    except OSError as error:
        print(f"known vulnerabilities: NOT CHECKED, {ADVISORIES[0]} cannot be reached ({error})")
        return 2 if strict else 0
    return _run("pip_audit", "--requirement", str(LOCK), "--disable-pip", "--no-deps", "--vulnerability-service", "osv")


def _run(module: str, *arguments: str) -> int:
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - our own tools


def main() -> int:
    """Run all checks, even if one fails, and return the exit status."""
    wrong = write_sbom(SBOM) | licences.check()
    faults = check_faults(strict="--strict" in sys.argv[1:])
    return 1 if wrong else faults


if __name__ == "__main__":
    sys.exit(main())
