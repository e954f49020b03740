"""Before memory is measured, the writer's window of recent batches is full."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rows.memory import fill_window
from benchmarks.stack import running
from tidemark.client import Producer
from tidemark.local.local_stack import WRITER

pytestmark = pytest.mark.integration


def test_filling_the_window_sends_one_batch_per_slot(tmp_path: Path) -> None:
    """The window's size is no multiple of the batches in flight."""
    settings = {"TIDEMARK_IDEMPOTENCE_WINDOW_BATCHES": "1007"}
    with running(tmp_path / "data", WRITER, settings=settings) as stack, Producer(stack.writer_address) as producer:
        producer.topics.create("flat", queues=1)
        fill_window(producer, "flat")
        assert producer.send("flat", b"next", queue_id=0).queue_offset == 1007
