"""A writer restores its small originals from their checked copies, and reports it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.builders import wire_batch
from tidemark.errors import CorruptStoreError
from tidemark.format.sys_flag import INNER_BATCH_FLAGS
from tidemark.v1 import topics_pb2

from .harness import RunningWriter, stored_records

pytestmark = pytest.mark.integration

ONE = wire_batch((b"x", b"", 0))
FILES = ["config/topics.json", "tidemark/writer/tombstones.json", "tidemark/writer/terms", "tidemark/format"]
FILES += ["tidemark/writer/queue_offsets"]


def fill(root: Path) -> None:
    """Write a store whose last change of topics is a new topic of inner batches, after the deletion of another."""
    with RunningWriter(root) as writer:
        writer.append("gone", ONE)
        writer.topics.DeleteTopic(topics_pb2.DeleteTopicRequest(name="gone"))
        writer.topics.CreateTopic(topics_pb2.CreateTopicRequest(name="last", attributes={"queue.type": "BatchCQ"}))
        writer.append("last", ONE + ONE)


@pytest.mark.parametrize("damage", [b"", b"\0" * 64, b"{junk", None], ids=["empty", "zero", "junk", "gone"])
@pytest.mark.parametrize("name", FILES)
def test_damaged_file_is_restored_at_the_start(tmp_path: Path, name: str, damage: bytes | None) -> None:
    """Topics keep their type, numbering continues, the term is a new one; one event names the file and the cause."""
    fill(tmp_path)
    path = tmp_path / name
    before = path.read_bytes()
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    with capture_logs() as events, RunningWriter(tmp_path) as writer:
        if "terms" not in name:
            assert path.read_bytes() == before
        assert writer.append("last", ONE + ONE).queue_offset == 2
        assert writer.append("gone", ONE).queue_offset == 1
        assert writer.info().term == 2
    assert stored_records(tmp_path)[-2].sys_flag & INNER_BATCH_FLAGS == INNER_BATCH_FLAGS
    (told,) = [event for event in events if event["event"] == "original_restored"]
    assert (told["path"], told["cause"]) == (str(path), "MISSING" if damage is None else "DAMAGED")


def test_file_and_copy_damaged_stop_the_start_until_they_are_repaired(tmp_path: Path) -> None:
    """The error names file and command; with --accept-older the command restores the content before the last change."""
    fill(tmp_path)
    for name in ("config/topics.json", "tidemark/writer/topics.json.copy"):
        (tmp_path / name).write_bytes(b"\0" * 64)
    with pytest.raises(CorruptStoreError, match=r"topics\.json.*`tidemark store repair`"), RunningWriter(tmp_path):
        pass
    command = [sys.executable, "-m", "tidemark.cli", "store", "repair", str(tmp_path)]
    lost = subprocess.run(command, capture_output=True, text=True, check=False)
    assert lost.returncode == 1
    assert "config/topics.json" in lost.stdout
    assert "lost" in lost.stdout
    subprocess.run([*command, "--accept-older"], capture_output=True, check=True)
    with RunningWriter(tmp_path) as writer:
        assert [topic.name for topic in writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics] == []


def test_repair_refuses_a_store_in_use(tmp_path: Path) -> None:
    """The running services own these files."""
    with RunningWriter(tmp_path):
        command = [sys.executable, "-m", "tidemark.cli", "store", "repair", str(tmp_path)]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "stop it first" in refused.stderr
