"""Install what extras and groups of pyproject.toml need, in the versions of requirements.lock, into this environment.

    .venv/bin/python -m scripts.install all demo

It shows how far pip is: a line that changes on a terminal, elsewhere a line every five seconds. If pip fails, its whole
output is printed.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from scripts.lock_for import part_of_lock

_LOOK_S, _LINE_S = 0.5, 5.0  # between two looks at pip's output, and between two lines where there is no terminal
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-color", "install", "--progress-bar=off")


def progress(output: str, entries: int, installed: int) -> str:
    """Return what pip is doing.

    *output* is what it has printed, *entries* the number of the lock's entries, and *installed* the number of packages
    that it has installed.
    """
    if found := re.search(r"^Installing collected packages: (.*)$", output, re.MULTILINE):
        return f"installing {installed} of {found[1].count(',') + 1} packages"
    if found := re.search(r"^Building wheels? for collected packages: (.*)$", output, re.MULTILINE):
        return f"building {found[1]}"
    done = len(re.findall("^(?:Collecting|Requirement already satisfied:) ", output, re.MULTILINE))
    ignored = len(re.findall("^Ignoring ", output, re.MULTILINE))  # for another platform or Python
    return f"downloading {done} of {entries - ignored} packages"


def install(lock: str) -> int:
    """Run pip on *lock*, the text of a lock file, and return its exit status."""
    site = Path(sysconfig.get_path("purelib"))

    def packages() -> int:
        return len(list(site.glob("*.dist-info")))

    entries, before, began = len(re.findall(r"^\S", lock, re.MULTILINE)), packages(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        wanted, log = Path(folder, "requirements.txt"), Path(folder, "output")
        wanted.write_text(lock)
        with (
            log.open("w") as output,
            subprocess.Popen(  # noqa: S603 - pip
                [*_PIP, "--require-hashes", "-r", str(wanted)], stdout=output, stderr=subprocess.STDOUT
            ) as pip,
        ):
            while pip.poll() is None:
                doing = progress(log.read_text(), entries, packages() - before)
                show(f"{doing} ({time.monotonic() - began:.0f} s)")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    pip.wait(_LOOK_S if sys.stdout.isatty() else _LINE_S)
        show(f"{packages() - before} packages are installed ({time.monotonic() - began:.0f} s)")
        if pip.returncode:
            print(f"\n{log.read_text()}", file=sys.stderr)
        elif sys.stdout.isatty():
            print()
    return pip.returncode


def show(text: str) -> None:
    """Print *text*: on a terminal over the line before it."""
    print(*(("\r\x1b[K", text) if sys.stdout.isatty() else (text, "\n")), sep="", end="", flush=True)


if __name__ == "__main__":
    sys.exit(install(part_of_lock(sys.argv[1:], set())))
