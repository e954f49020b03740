"""Provides the other clients and their servers on this machine, once, in the user's cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.cache import digest, locked_cache
from benchmarks.peers.python.systems import System
from benchmarks.peers.toolchain import KAFKA, ToolchainMissingError, load_programs, make_toolchain

LOCK = Path(__file__).with_name("requirements.lock")
NATS_MODULE, NATS_VERSION = "github.com/nats-io/nats-server/v2", "v2.15.2"


def require(system: System) -> None:
    """Install the client and the server of *system* where they are missing. Raises ToolchainMissingError."""
    if system.server == "kafka":
        make_toolchain(KAFKA, load_programs(KAFKA))
    elif system.server == "nats":
        nats_server()
    elif system.server == "redis":
        redis_server()
    python_of(system)


def python_of(system: System) -> Path:
    """Return the Python with the client of *system*: this one for our own. Raises ToolchainMissingError."""
    return Path(sys.executable) if system.server in ("tidemark", "bare") else _clients_python()


def _clients_python() -> Path:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    with locked_cache("python-clients") as cache:
        folder = cache / f"{version}-{digest([LOCK])}"
        python, made = folder / "bin" / "python", folder / "made"
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run("the Python clients", [sys.executable, "-m", "venv", str(folder)])
            pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
            _run("the Python clients", [*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)])
            made.touch()
    return python


def client_versions() -> dict[str, str]:
    """Return the versions of the lock by package."""
    return dict(re.findall(r"^([\w-]+)==([^\s;]+)", LOCK.read_text(), re.MULTILINE))


def nats_server() -> Path:
    """Return the program nats-server, built from its Go module. Raises ToolchainMissingError."""
    with locked_cache(f"nats-server-{NATS_VERSION}") as cache:
        program = cache / "nats-server"
        if not program.exists():
            if shutil.which("go") is None:
                raise ToolchainMissingError("go is missing, which builds nats-server (Debian: golang-go)")
            with tempfile.TemporaryDirectory(dir=cache) as work:
                command = ["go", "install", f"{NATS_MODULE}@{NATS_VERSION}"]
                _run("nats-server", command, {"GOBIN": work, "GOFLAGS": "-buildvcs=false"})
                (Path(work) / "nats-server").rename(program)
    return program


def redis_server() -> Path:
    """Return the program redis-server. Raises ToolchainMissingError."""
    found = shutil.which("redis-server")
    if found is None:
        raise ToolchainMissingError("redis-server is missing (Debian: sudo apt-get install redis-server)")
    return Path(found)


def _run(what: str, command: list[str], environment: dict[str, str] | None = None) -> None:
    """Run a command of an installation. Raises ToolchainMissingError with its last line."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})}
        )
    except OSError as error:
        raise ToolchainMissingError(f"{what} cannot be installed: {error}") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise ToolchainMissingError(f"{what} cannot be installed: {lines[-1]}")
