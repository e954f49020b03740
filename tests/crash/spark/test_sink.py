"""A Spark driver that is killed while it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from tidemark.client import Consumer, Producer
from tidemark.local.local_stack import LocalStack

_DRIVER = Path(__file__).with_name("sink_driver.py")
_ROWS = 60_000
_KILLS = 3
_DEADLINE_S = 400


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_a_killed_driver_loses_and_duplicates_nothing(tmp_path: Path) -> None:
    """The writer's window holds one batch, and other clients' messages come in between."""
    with LocalStack(tmp_path / "data", environment={"TIDEMARK_IDEMPOTENCE_WINDOW_BATCHES": "1"}) as stack:
        with Producer(stack.writer_address) as producer:
            producer.send_table(pa.table({"body": [b"%d" % number for number in range(_ROWS)]}), "in", body="body")
        given = {"writers": stack.writer_address, "url": stack.query_url, "folder": str(tmp_path), "kills": _KILLS}
        for run in range(_KILLS + 1):
            command = [sys.executable, str(_DRIVER), json.dumps(given | {"run": run})]
            status = subprocess.run(command, timeout=_DEADLINE_S, check=False).returncode
            assert status == (-signal.SIGKILL if run < _KILLS else 0)
            with Producer(stack.writer_address) as producer:
                producer.send("other", os.urandom(8))
        bodies = Counter[int]()
        with Consumer(["out"], url=stack.query_url) as consumer:
            while (table := consumer.poll_table(timeout_s=2)) is not None:
                bodies.update(int(body) for body in table["body"].to_pylist())
        assert bodies == Counter(range(_ROWS))
