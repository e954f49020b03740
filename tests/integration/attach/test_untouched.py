"""Nothing below the broker's directory is written: no lock, no file, no time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.waiting import until
from tidemark.store.lock import FolderLock, StoreLock

from .attached import Attached, attach, look_at
from .served import Served


def use_everything(client: httpx.Client) -> None:
    """Send every kind of request, including writing ones."""
    for path in (
        "/v1/topics",
        "/v1/topics/orders",
        "/v1/topics/orders/queues/0/messages?offset=0",
        "/v1/topics/orders/queues/0/messages?offset=10&wait_ms=50",
        "/v1/topics/orders/queues/0/offset?time=0",
        "/v1/topics/orders/messages",
        "/v1/topics/orders/messages?key=k3",
        "/v1/messages/at/0",
        "/v1/status",
        "/v1/corruptions",
        "/v1/groups",
        "/metrics",
        "/readyz",
    ):
        assert client.get(path).status_code == 200, path
    offset = client.put("/v1/groups/g/topics/orders/queues/0/offset", json={"offset": 3})
    assert offset.status_code == 200, offset.text
    append = client.post("/v1/topics/orders/messages", json={"messages": [{"body": "aGk="}]})
    assert append.status_code == 503, append.text
    assert append.json()["reason"] == "WRITER_UNREACHABLE"


def test_files_folders_and_times_of_the_broker_do_not_change(broker: BuiltStore, tmp_path: Path) -> None:
    """ctime shows any write, rename, chmod or utime."""
    (broker.root / "lock").write_bytes(b"lock")
    before = look_at(broker.root)
    with attach(broker.root, tmp_path / "state") as attached:
        attached.wait_for_watermark(broker.end)
        use_everything(attached.client)
    assert look_at(broker.root) == before
    assert (tmp_path / "state" / "config" / "consumerOffset.json").exists()


def test_the_lock_of_the_broker_is_not_taken(broker: BuiltStore, attached: Attached) -> None:
    """The broker may hold its lock, or start later."""
    attached.wait_for_watermark(broker.end)
    taking = "import sys, pathlib; from tidemark.store.lock import StoreLock; StoreLock(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", taking, str(broker.root / "lock")], check=True, timeout=60)
    lock = StoreLock(broker.root / "lock")
    try:
        assert attached.get("/v1/status")["attached"] is True
        assert attached.bodies("orders")[0] == "m0"
    finally:
        lock.release()


@pytest.mark.slow
def test_serve_attach_needs_no_write_permission(broker: BuiltStore, tmp_path: Path) -> None:
    """The command and every request work; new messages of the broker are shown, and one Ctrl-C ends it."""
    with Served(broker.root, tmp_path / "state") as served, httpx.Client(base_url=served.url, timeout=60) as client:
        use_everything(client)
        broker.append("orders", b"while it runs")
        path = "/v1/topics/orders/queues/0/messages?offset=10&body_encoding=utf8&wait_ms=30000"
        assert [message["body"] for message in client.get(path).json()["messages"]] == ["while it runs"]
        said = served.stop()
    assert [line for line in said if line.endswith("stopped")] == ["query stopped", "attach stopped"]
    theirs = {"commitlog", "consumequeue", "batchconsumequeue", "index", "config"}
    assert {path.name for path in broker.root.iterdir()} == theirs


def run_attach(root: Path, state: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "services.indexer",
        "attach",
        "--store-root",
        str(root),
        "--state-root",
        str(state),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_state_folder_in_the_store_is_refused(broker: BuiltStore) -> None:
    """It would be below the broker's directory. No file is created."""
    before = look_at(broker.root)
    done = run_attach(broker.root, broker.root / "config" / "state")
    assert done.returncode == 2
    assert "choose a folder outside" in done.stderr
    command = [sys.executable, "-m", "tidemark.cli", "serve", "--attach", str(broker.root), "--state", str(broker.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert look_at(broker.root) == before


def test_a_state_folder_has_one_follower(broker: BuiltStore, tmp_path: Path) -> None:
    """The second one reports that and ends."""
    folder = tmp_path / "state" / "tidemark" / "indexer"
    folder.mkdir(parents=True)
    lock = FolderLock(folder / "lock")
    lock.require()
    done = run_attach(broker.root, tmp_path / "state")
    assert done.returncode == 1
    assert "StoreLockedError" in done.stderr
    lock.release()


def test_broker_groups_are_visible_and_own_offsets_are_stored_separately(
    broker: BuiltStore, attached: Attached
) -> None:
    """A group continues from its offset in the broker until it sets one here; the broker's file does not change."""
    attached.wait_for_watermark(broker.end)
    theirs = broker.root / "config" / "consumerOffset.json"
    theirs.write_text(json.dumps({"offsetTable": {"orders@g": {"0": 4}, "orders@h": {"0": 7}}}))
    seen = look_at(broker.root)
    path = "/v1/groups/{}/topics/orders/queues/0/offset"
    assert attached.get(path.format("g"))["offset"] == 4
    assert attached.client.put(path.format("g"), json={"offset": 9}).status_code == 200
    assert attached.get(path.format("g"))["offset"] == 9
    assert {group["group"] for group in attached.get("/v1/groups")["groups"]} == {"g", "h"}
    assert look_at(broker.root) == seen
    replacement = theirs.with_suffix(".new")
    replacement.write_text(json.dumps({"offsetTable": {"orders@h": {"0": 8}}}))
    os.replace(replacement, theirs)
    until(lambda: attached.get(path.format("h"))["offset"] == 8, "the broker's progress is seen")
