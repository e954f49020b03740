"""Makes a small store with the code of another checkout, and packs it: `python -m scripts.old_store CHECKOUT COMMIT`.

The checkout's own writer, pipeline and query service write the store; this program only uses their REST API. It writes
two archives, each with a JSON file that describes the content, to tests/integration/upgrade/data:

    <commit>-stopped   all services were stopped in order, and everything is indexed
    <commit>-killed    the pipeline was stopped earlier, and the writer was killed
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidemark.local.local_stack import free_port

DATA = Path(__file__).resolve().parents[1] / "tests" / "integration" / "upgrade" / "data"
TOPIC, QUEUES, GROUP = "orders", 4, "billing"
COUNT = 400  # messages
SIZES = {
    "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": "65536",
    "TIDEMARK_CONSUME_QUEUE_FILE_SIZE_BYTES": "2000",
    "TIDEMARK_BATCH_CONSUME_QUEUE_FILE_SIZE_BYTES": "4600",
    "TIDEMARK_INDEX_SLOTS": "100",
    "TIDEMARK_INDEX_ENTRIES": "400",
}
_START_S = 120.0


class OldServices:
    """The services of *checkout* on one store."""

    def __init__(self, checkout: Path, store: Path) -> None:
        self._checkout = checkout
        writer = f"127.0.0.1:{free_port()}"
        query = f"127.0.0.1:{free_port()}"
        self.url = f"http://{query}"
        own = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
        self._environment = {
            **own,
            **SIZES,
            "PYTHONPATH": str(checkout),
            "TIDEMARK_STORE_ROOT": str(store),
            "TIDEMARK_WRITER_LISTEN": writer,
            "TIDEMARK_WRITER_ADDRESS": writer,
            "TIDEMARK_QUERY_LISTEN": query,
        }

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start ``python -m`` *command* in the checkout."""
        arguments = [sys.executable, "-m", *command]
        return subprocess.Popen(arguments, cwd=self._checkout, env=self._environment)  # noqa: S603 - the caller's

    @contextlib.contextmanager
    def running(self, *command: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run *command* until the block ends, then stop it with SIGTERM."""
        process = self.start(*command)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON answer of the query service. Retry for two minutes while it is not reachable."""
        deadline = time.monotonic() + _START_S
        while True:
            data = None if body is None else json.dumps(body).encode()
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)  # noqa: S310 - ours
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                    content = answer.read()
                    return json.loads(content) if content else None
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)


def message(number: int) -> dict[str, Any]:
    """Return message *number*, which is sent to queue *number* modulo QUEUES."""
    return {"body": f"order {number} " + "x" * 200, "tag": "AB"[number % 2], "keys": [f"k{number}"]}


def fill(services: OldServices, numbers: range) -> None:
    """Append the messages with these *numbers*, one by one."""
    for number in numbers:
        body = {"messages": [message(number)], "queue_id": number % QUEUES}
        answer = services.ask("POST", f"/v1/topics/{TOPIC}/messages", body)
        assert answer["queue_offset"] == number // QUEUES


def make(checkout: Path, store: Path, *, kill: bool) -> dict[str, Any]:
    """Write the store and return a description of its content."""
    services = OldServices(checkout, store)
    with services.running("services.writer") as writer, services.running("services.indexer", "query"):
        fill(services, range(300))
        with services.running("services.indexer", "pipeline", "--once") as once:
            assert once.wait() == 0
        offsets = {str(queue_id): 10 + queue_id for queue_id in range(QUEUES)}
        for queue_id, offset in offsets.items():
            path = f"/v1/groups/{GROUP}/topics/{TOPIC}/queues/{queue_id}/offset"
            services.ask("PUT", path, {"offset": offset})
        fill(services, range(300, COUNT))
        if kill:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        else:
            with services.running("services.indexer", "pipeline", "--once") as once:
                assert once.wait() == 0
    return {"topic": TOPIC, "group": GROUP, "offsets": offsets, "messages": COUNT}


def main() -> None:
    """Write both archives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("commit", help="commit of the checkout, for the names of the archives")
    given = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    for kind in ("stopped", "killed"):
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store"
            held = make(given.checkout.resolve(), store, kill=kind == "killed")
            name = f"{given.commit}-{kind}"
            with tarfile.open(DATA / f"{name}.tar.xz", "w:xz") as archive:
                archive.add(store, "store", filter=_nobodys)
            made_by = {"commit": given.commit, "command": f"python -m scripts.old_store CHECKOUT {given.commit}"}
            (DATA / f"{name}.json").write_text(json.dumps({**made_by, **held}, indent=1) + "\n")


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return *entry* without an owner; None for Spark's checkpoint, which contains paths of this machine."""
    if "/indexer/spark" in entry.name:
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main()
