"""Finds promtool and prometheus, and runs promtool: `python -m scripts.promtool check rules FILE`.

Programs in PATH come first, then those of Debian's package, which is unpacked (not installed) in build/prometheus.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "build" / "prometheus"
_PACKAGE = "prometheus"


def find(name: str) -> Path | None:
    """Return the path of the program *name*; None if it must be fetched."""
    on_path = shutil.which(name)
    unpacked = FOLDER / "usr" / "bin" / name
    return Path(on_path) if on_path else unpacked if unpacked.exists() else None


def tool(name: str) -> Path:
    """Return the path of the program *name*, and fetch it if it is missing. Raises RuntimeError with the remedy."""
    found = find(name)
    if found is None:
        _fetch()
        found = find(name)
    if found is None:
        raise RuntimeError(f"{name} is missing: install Debian's package {_PACKAGE}, or put {name} in PATH")
    return found


def _fetch() -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        download = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", _PACKAGE]
        if subprocess.run(download, cwd=folder, check=False).returncode and os.getuid() == 0:  # noqa: S603 - no input
            subprocess.run(["apt-get", "update", "-qq"], check=False)  # noqa: S607 - the system's own
            subprocess.run(download, cwd=folder, check=False)  # noqa: S603
        for package in Path(folder).glob("*.deb"):
            FOLDER.mkdir(parents=True, exist_ok=True)
            subprocess.run(["dpkg", "-x", package, FOLDER], check=True)  # noqa: S603, S607


def main(arguments: list[str]) -> int:
    """Run promtool and return its exit status; 1 if it is missing."""
    try:
        promtool = tool("promtool")
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return subprocess.run([promtool, *arguments], check=False).returncode  # noqa: S603 - the caller's own arguments


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
