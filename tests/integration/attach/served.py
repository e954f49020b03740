"""`tidemark serve --attach` as a user starts it, with the store mounted read-only if the machine allows it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.fixed_ports import fixed_port

_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
_STOP_TIMEOUT_S = 60


class Served:
    """Runs until the block ends. is_read_only: True if the mount prevents any write."""

    def __init__(self, root: Path, state: Path, *, environment: dict[str, str] | None = None) -> None:
        self.is_read_only = _can_mount_read_only(root)
        self.url = f"http://127.0.0.1:{(port := fixed_port())}"
        options = ["--attach", str(root), "--state", str(state), "--query-port", str(port)]
        settings = [f"{name}={value}" for name, value in (environment or {}).items()]
        command = ["env", *settings, sys.executable, "-m", "tidemark.cli", "serve", *options]
        self.process = subprocess.Popen(
            [*(_read_only(root) if self.is_read_only else []), *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Self:
        lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                return self
        self.process.wait()
        raise AssertionError("".join(lines))

    def stop(self) -> list[str]:
        """Send Ctrl-C and return the output. AssertionError if it does not end cleanly."""
        self.process.send_signal(signal.SIGINT)
        output, _ = self.process.communicate(timeout=_STOP_TIMEOUT_S)
        assert self.process.returncode == 0, output
        return [line.strip() for line in output.splitlines()]

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=_STOP_TIMEOUT_S)


def _read_only(folder: Path) -> list[str]:
    """Return the start of a command that sees *folder* mounted read-only, in its own mount namespace."""
    return ["unshare", "--mount", "bash", "-c", _READ_ONLY, "read-only", str(folder)]


def _can_mount_read_only(folder: Path) -> bool:
    try:
        return subprocess.run([*_read_only(folder), "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
