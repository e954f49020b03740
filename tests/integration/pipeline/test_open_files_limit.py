"""Each service starts with the usual soft limit of open files, and raises it: a store has more queues than that."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

SOFT = 256
# Waits for its limit, then becomes the service. `preexec_fn` would fork this process, whose tests have used gRPC, and
# gRPC's fork handlers may abort the child before the exec.
LAUNCH = "import os, sys; sys.stdin.read(1); os.execv(sys.executable, [sys.executable, '-m', *sys.argv[1:]])"
DOORS = {
    "writer": ("services.writer",),
    "query": ("services.indexer", "query"),
    "attach": ("services.indexer", "attach"),
    "pipeline": ("services.indexer", "pipeline"),
}


@contextmanager
def started(door: tuple[str, ...], root: Path) -> Iterator[subprocess.Popen[bytes]]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    addresses = {"TIDEMARK_WRITER_LISTEN": "127.0.0.1:0", "TIDEMARK_QUERY_LISTEN": "127.0.0.1:0"}
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, *door],
        env={
            **os.environ,
            **addresses,
            "TIDEMARK_STORE_ROOT": str(root),
            "TIDEMARK_STATE_ROOT": str(root.parent / "state"),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (SOFT, hard))
        assert process.stdin is not None
        with process.stdin as go:
            go.write(b"\n")
        yield process
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("name", DOORS)
def test_a_service_raises_its_limit_of_open_files(name: str, tmp_path: Path) -> None:
    root = tmp_path / "store"
    (root / "commitlog").mkdir(parents=True)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert hard > SOFT, "the hard limit must exceed the soft limit"
    with started(DOORS[name], root) as process:
        deadline = time.monotonic() + 60
        while resource.prlimit(process.pid, resource.RLIMIT_NOFILE) != (hard, hard):
            assert process.poll() is None, "the service has ended already"
            assert time.monotonic() < deadline, resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
            time.sleep(0.02)
