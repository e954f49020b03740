"""The appender measures its writes, and the log's next pages are requested from its end."""

from __future__ import annotations

import threading
from pathlib import Path
from unittest import mock

import pytest

from services.writer.log import page_preallocation as pages_ahead
from tests.builders import wire_batch
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.v1 import commit_log_pb2 as pb

from .harness import RunningWriter

pytestmark = pytest.mark.integration


def test_an_expensive_write_preallocates_pages_after_the_log(tmp_path: Path) -> None:
    """Any write counts as expensive here, because no machine has expensive pages on demand."""
    asked: list[int] = []
    first = threading.Event()

    def read_ahead(_: MappedFileQueue, offset: int, length: int) -> None:
        asked.append(offset)
        first.set()

    with (
        mock.patch.object(pages_ahead, "_DEAR_S_A_BYTE", -1.0),
        mock.patch.object(MappedFileQueue, "read_ahead", read_ahead),
        RunningWriter(tmp_path / "store", auto_create_topics=True) as writer,
    ):
        packed = wire_batch((bytes(pages_ahead.LEAST_BYTES), b"", 0))
        answer = writer.log.AppendBatch(pb.AppendBatchRequest(topic="t", queue_id=0, packed=packed))
        assert first.wait(10)
    assert asked[0] == answer.end_physical_offset
