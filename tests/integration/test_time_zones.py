"""The services' answers and files do not depend on the machine's time zone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builders import STORE_MS, properties, write_log
from tests.built_store import BuiltStore
from tests.pipeline_runs import index_contents

pytestmark = pytest.mark.integration
ZONES = ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/St_Johns")  # +14, -11, and a half hour

_ASK = """
import json, sys
from pathlib import Path
from tests.query_server import serve_query
with serve_query(Path(sys.argv[1])) as client:
    answers = [client.get(path).json() for path in json.loads(sys.argv[2])]
print(json.dumps(answers))
"""
_BUILD = """
import sys
from pathlib import Path
from tests.pipeline_runs import build, plan_of
build(plan_of(Path(sys.argv[1]), index_slots=16, index_entries=64, consume_queue_file_size_bytes=200))
"""


def run_in(zone: str, program: str, *arguments: str) -> str:
    """Return the last line that *program* prints in that zone."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (done.stdout.splitlines() or [""])[-1]


def test_answers_are_the_same_in_every_time_zone(tmp_path: Path) -> None:
    """Offsets by time, by epoch milliseconds and by RFC 3339, and pages by key and by time are compared."""
    store = BuiltStore(tmp_path / "store")
    store.topic("orders", queues=1)
    for number in range(5):
        store.append("orders", b"%d" % number, {"KEYS": f"k{number}"})
    store.publish()
    paths = [
        f"/v1/topics/orders/queues/0/offset?time={STORE_MS}",
        "/v1/topics/orders/queues/0/offset?time=2026-06-30T23:59:59Z",
        "/v1/topics/orders/queues/0/offset?time=2026-07-01T13:59:59%2B14:00",
        "/v1/topics/orders/messages?key=k3",
        "/v1/topics/orders/messages?from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z",
        "/v1/topics/orders/queues/0/messages?offset=0",
    ]
    answers: list[Any] = [json.loads(run_in(zone, _ASK, str(store.root), json.dumps(paths))) for zone in ZONES]
    assert [other for other in answers if other != answers[0]] == []
    assert answers[0][1]["offset"] == answers[0][2]["offset"]


def test_index_files_written_in_several_time_zones_stay_in_order(tmp_path: Path) -> None:
    """They are named by local time, as in RocketMQ: a store that moves west must not get one before its last one."""
    moved, stayed = tmp_path / "moved", tmp_path / "stayed"
    for number, zone in enumerate(("Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"), 1):
        write_keys(moved, 100 * number)
        run_in(zone, _BUILD, str(moved))
    write_keys(stayed, 300)
    run_in("UTC", _BUILD, str(stayed))
    assert index_contents(moved) == index_contents(stayed)
    assert len(index_contents(stayed)) > 3


def write_keys(root: Path, count: int) -> None:
    """Write a log of *count* messages with one key each."""
    records = ({"topic": b"t", "queue_offset": i, "properties": properties({"KEYS": f"k{i}"})} for i in range(count))
    write_log(root / "commitlog", 1 << 20, records)
