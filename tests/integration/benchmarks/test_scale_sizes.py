"""The model's size of a store and the writer's open files, compared with a store that the services have made."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.scale import memory, sizes
from benchmarks.scale.measure import stored
from benchmarks.scale.workload import Workload
from benchmarks.stack import running
from tests.unit.benchmarks.scale.constants_of import constants_of
from tidemark.client import Producer
from tidemark.local.local_stack import WRITER

pytestmark = pytest.mark.integration
FILES = sizes.Files(8 << 20, 20_000, 460, 250, 1000)
WORKLOAD = Workload(0, 120, batch=50, keys=2, key_bytes=14, topic_bytes=11, queues=6)
BATCHES = 90


def test_single_messages_have_the_predicted_sizes(tmp_path: Path) -> None:
    """It is exact: with one segment no space is empty at a file's end."""
    stored.make(tmp_path / "data", WORKLOAD, BATCHES, FILES)
    found = stored.look(tmp_path / "data", WORKLOAD)
    assert found == stored.predict(WORKLOAD, BATCHES, FILES)
    assert found.index_files > 1


def test_batches_have_the_predicted_sizes(tmp_path: Path) -> None:
    """Only the digits of the queue offset in INNER_BASE differ."""
    workload = Workload(**{**vars(WORKLOAD), "batch_queues": True})
    stored.make(tmp_path / "data", workload, BATCHES, FILES)
    found, told = stored.look(tmp_path / "data", workload), stored.predict(workload, BATCHES, FILES)
    assert 0 <= told.log_bytes - found.log_bytes <= 10 * BATCHES
    assert found._replace(log_bytes=0) == told._replace(log_bytes=0)
    assert found.queue_files > workload.queues


def test_the_writer_keeps_a_file_open_for_each_segment(tmp_path: Path) -> None:
    """It has created the segments since its start."""
    data, small = tmp_path / "data", FILES._replace(segment_bytes=64 << 10)
    with running(data, WRITER, settings=stored.settings_of(small)) as stack:
        with Producer(stack.writer_address) as producer:
            for number in range(40):
                producer.send_packed_async("t", stored.batch_of(WORKLOAD, number), count=WORKLOAD.batch).result()
        links = open_files(stack.services[WRITER].pid)
        segments = len(list((data / "commitlog").iterdir()))
    assert segments > 5
    open_segments = sum(str(data / "commitlog") in link for link in links)
    assert open_segments == memory.writer_files(segments, constants_of())


def open_files(pid: int) -> list[str]:
    """Return the files that a process has open, except those that it closes meanwhile."""
    links = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(os.readlink(link))
    return links
