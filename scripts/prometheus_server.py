"""Runs a real Prometheus that scrapes running services."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

from scripts.promtool import tool
from tidemark.local.local_stack import free_port

RULES = Path(__file__).resolve().parents[1] / "deploy" / "prometheus" / "alerts.yml"
_TIMEOUT_S = 60.0
_POLL_S = 0.2


@contextlib.contextmanager
def prometheus_over(addresses: Mapping[str, str], folder: Path) -> Iterator[httpx.Client]:
    """Run Prometheus and yield a client of its API.

    Prometheus scrapes every second, evaluates the alert rules, and stores its data in *folder*.

    addresses: of the metrics, by service. Raises RuntimeError if Prometheus is missing or does not become ready.
    """
    configuration = folder / "prometheus.yml"
    configuration.write_text(_configuration(addresses))
    port = free_port()
    with (folder / "log").open("w") as told:
        process = subprocess.Popen(  # noqa: S603 - our own arguments
            [
                tool("prometheus"),
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=told,
            stderr=told,
        )
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
                _wait_until_ready(client, process, folder / "log")
                yield client
        finally:
            process.terminate()
            process.wait(30)


def _configuration(addresses: Mapping[str, str]) -> str:
    lines = ["global: {scrape_interval: 1s, evaluation_interval: 1s}", f"rule_files: ['{RULES}']", "scrape_configs:"]
    for service, address in addresses.items():
        lines += [f"  - job_name: tidemark-{service}", f"    static_configs: [{{targets: ['{address}']}}]"]
    return "\n".join(lines) + "\n"


def _wait_until_ready(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if client.get("/-/ready").status_code == httpx.codes.OK:
                return
        time.sleep(_POLL_S)
    raise RuntimeError(f"prometheus did not become ready within {_TIMEOUT_S:.0f} s: {log.read_text()}")
