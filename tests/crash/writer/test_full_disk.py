"""A disk that is really full: a small tmpfs, if it can be mounted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.builders import wire_batch
from tests.crash.small_disk import fill, small_disk
from tests.integration.writer.harness import Refusal, stored_records
from tidemark.v1 import commit_log_pb2 as pb

from .process import WriterProcess

pytestmark = pytest.mark.crash


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount 12 MiB."""
    with small_disk(tmp_path / "disk", "12m") as disk:
        yield disk


def append(writer: WriterProcess, number: int, size: int) -> pb.AppendBatchResponse | Refusal:
    wire = wire_batch((b"%d:" % number + os.urandom(size), b"", 0), (b"%d;" % number + os.urandom(1000), b"", 0))
    try:
        answer: pb.AppendBatchResponse = writer.log.AppendBatch(
            pb.AppendBatchRequest(topic="t", queue_id=0, packed=wire), timeout=20
        )
    except grpc.RpcError as error:
        return Refusal(error)
    return answer


def test_a_full_disk_refuses_appends_and_recovers(disk: Path) -> None:
    """Appends are refused with DISK_FULL without space, and accepted when it is back; nothing refused is stored."""
    writer = WriterProcess(disk / "store").wait_until_started()
    acknowledged: list[int] = []
    refused: list[Refusal] = []
    for number in range(60):
        outcome = append(writer, number, 400_000 if number < 40 else 20_000)
        if isinstance(outcome, Refusal):
            refused.append(outcome)
        else:
            acknowledged.append(number)
            assert outcome.queue_offset == 2 * (len(acknowledged) - 1)
    assert refused
    assert {(refusal.code.name, refusal.reason) for refusal in refused} == {("RESOURCE_EXHAUSTED", "DISK_FULL")}
    subprocess.run(["mount", "-o", "remount,size=24m", disk], check=True)
    assert not isinstance(append(writer, 60, 400_000), Refusal)
    assert writer.terminate() == 0
    stored = [int(record.body.partition(b":")[0]) for record in stored_records(disk / "store")[::2]]
    assert stored == [*acknowledged, 60]


def test_a_stop_on_a_full_disk_is_clean(disk: Path) -> None:
    """Unsaved data is found in the log at the next start."""
    writer = WriterProcess(disk / "store").wait_until_started()
    while not isinstance(append(writer, 0, 100_000), Refusal):
        pass
    fill(disk / "rest")
    assert writer.terminate() == 0
    count = len(stored_records(disk / "store"))
    subprocess.run(["mount", "-o", "remount,size=24m", disk], check=True)
    writer = WriterProcess(disk / "store").wait_until_started()
    answer = append(writer, 1, 10)
    assert not isinstance(answer, Refusal)
    assert answer.queue_offset == count
    writer.terminate()
