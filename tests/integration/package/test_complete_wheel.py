"""`tidemark[all]` from the wheel: the services run without a clone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.fixed_ports import fixed_port
from tests.integration.package.conftest import Installed

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow, pytest.mark.exhaustive]

_START_S = 240.0  # the loops are compiled once, in the package's folder


@pytest.fixture
def served(complete: Installed, tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `tidemark serve` of the wheel in an empty folder; yield its address and process."""
    url = f"http://127.0.0.1:{(port := fixed_port())}"
    ports = ["--writer-port", str(fixed_port()), "--query-port", str(port)]
    command = [str(complete.folder / "bin" / "tidemark"), "serve", *ports]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        yield url, process
        process.kill()


def test_the_services_run_from_the_wheel_and_not_from_a_checkout(complete: Installed) -> None:
    """The next test runs only code of the wheel."""
    done = complete.run("import tidemark, tidemark_services.writer; print(tidemark.__file__)\nimport services")
    assert done.stdout.strip() == str(complete.site_packages / "tidemark" / "__init__.py")
    assert "No module named 'services'" in done.stderr


@pytest.mark.timeout(_START_S + 60)
def test_serve_works_without_a_clone(served: tuple[str, subprocess.Popen[str]], tmp_path: Path) -> None:
    """All three services run, including Spark's workers: an appended message is indexed and pulled."""
    url, process = served
    _wait_until_ready(url, process)
    topic = f"{url}/v1/topics/orders"
    message = {"body": "hello", "body_encoding": "utf8"}
    sent = httpx.post(f"{topic}/messages", json={"messages": [message], "queue_id": 0}, timeout=60)
    assert sent.status_code == 201
    page = httpx.get(f"{topic}/queues/0/messages?offset=0&body_encoding=utf8&wait_ms=20000", timeout=60).json()
    assert [message["body"] for message in page["messages"]] == ["hello"]
    assert httpx.get(f"{url}/console").status_code == httpx.get(f"{url}/console/main.js").status_code == 200

    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    assert (tmp_path / "data" / "commitlog").is_dir()


def _wait_until_ready(url: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout and process.stdout.read()
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    pytest.fail("the services did not become ready")
