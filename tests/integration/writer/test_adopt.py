"""A real broker's directory, opened by Tidemark's writer: numbering continues at the ends that its clients saw."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import wire_batch
from tests.conftest import GOLDEN

from .harness import RunningWriter, log_bytes

pytestmark = [pytest.mark.integration, pytest.mark.conformance]


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("mixed/store", "mixed"),
        ("expired/store", "expired"),
        ("killed/store-killed", "killed"),
        ("killed/store-recovered", "killed"),
    ],
)
def test_an_adopted_store_continues_at_the_brokers_end(
    golden_store: Callable[[str], Path], tmp_path: Path, store: str, expected: str
) -> None:
    """Each queue's next append gets the broker's maximum offset; no byte below the old end changes."""
    root = Path(shutil.copytree(golden_store(store), tmp_path / "store"))
    with lzma.open(GOLDEN / expected / "expected.jsonl.xz", "rt") as lines:
        queues = [line for line in map(json.loads, lines) if line["kind"] == "queue"]
    before = log_bytes(root)
    with RunningWriter(root, commit_log_segment_size_bytes=len(next(iter(before.values())))) as writer:
        end = writer.info().recovered_end_offset
        assert writer.info().min_physical_offset == min(before)
        for queue in queues:
            answer = writer.append(queue["topic"], wire_batch((b"x", b"", 0)), queue_id=queue["queue_id"])
            assert answer.queue_offset == queue["max_offset"], queue
    after = log_bytes(root)
    for start, data in before.items():
        kept = max(0, min(end - start, len(data)))
        assert after.get(start, b"")[:kept] == data[:kept]
