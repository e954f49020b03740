"""A log that is built commit by commit, with the plain cases for few records, gives the files of one general build."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from services.indexer.pipeline.committed import CommittedOffset
from services.indexer.pipeline.epoch import run_share
from tests.builders import properties, write_log
from tests.pipeline_runs import index_contents, plan_of, queue_files
from tidemark.format import index_file
from tidemark.format.tags import SCHEDULE_TOPIC
from tidemark.index.dispatch import QueueGroups
from tidemark.index.ledger import read_ledger
from tidemark.index.open_queues import OpenQueues

SIZES = {"index_slots": 4, "index_entries": 12, "consume_queue_file_size_bytes": 100}
STEPS = (1, 1, 1, 1, 1, 1, 2, 0, -1)  # differences to the next queue offset: consecutive, a hole, repeats

records = st.fixed_dictionaries(
    {
        "queue": st.tuples(st.sampled_from(["orders", "o", SCHEDULE_TOPIC, "a/b"]), st.sampled_from([0, 0, 1, -1])),
        "step": st.sampled_from(STEPS),
        "sys_flag": st.sampled_from([0, 0, 0, 0x4, 0x8, 0xC]),
        "is_damaged": st.sampled_from([False, False, False, True]),
        "keys": st.integers(0, 5),
    }
)


def fields(drawn: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the arguments of `record_bytes` for the drawn records."""
    next_offsets: dict[tuple[str, int], int] = {}
    made = []
    for i, one in enumerate(drawn):
        topic, queue_id = one["queue"]
        queue_offset = max(next_offsets.get(one["queue"], 0) + one["step"] - 1, 0)
        next_offsets[one["queue"]] = queue_offset + 1
        entries = {"TAGS": f"t{i}", "DELAY": "2", "KEYS": " ".join(f"k{key % 3}" for key in range(one["keys"]))}
        if i % 2:
            entries["UNIQ_KEY"] = f"u{i}"
        made.append(
            {
                "topic": topic.encode(),
                "queue_id": queue_id,
                "queue_offset": queue_offset,
                "sys_flag": one["sys_flag"],
                "properties": properties(entries),
                "store_timestamp": 1_700_000_000_000 + 700 * i,
                **({"body_crc": 1} if one["is_damaged"] else {}),
            }
        )
    return made


def built(root: Path, drawn: Sequence[dict[str, Any]], cuts: set[int]) -> tuple[object, ...]:
    """Build the log of *drawn*, committed up to each record of *cuts* in turn, and return everything that it gives."""
    placed = write_log(root / "commitlog", 4096, fields(drawn))
    plan = plan_of(root, **SIZES)
    plan.paths.indexer.mkdir(parents=True)
    end = placed[-1].physical_offset + len(placed[-1].data)
    commits = [placed[cut].physical_offset for cut in sorted(cuts) if 0 < cut < len(placed)]
    ends = itertools.chain(commits, itertools.repeat(end))
    with patch.object(CommittedOffset, "read", lambda _: next(ends)):
        queues, keys = run_share(plan, [0, 1], follower=0)
    ledger = [{**entry, "found_ms": 0} for entry in read_ledger(plan.paths.indexer)]
    counts = queues.records, queues.damages, queues.oddities, keys.records
    return queue_files(root), index_contents(root) if (root / "index").exists() else [], ledger, counts


@settings(deadline=None)
@given(
    drawn=st.lists(records, min_size=1, max_size=25),
    cuts=st.one_of(st.just(set(range(25))), st.sets(st.integers(0, 24))),
)
def test_any_commits_give_the_files_of_one_build_queue_by_queue(drawn: list[dict[str, Any]], cuts: set[int]) -> None:
    """Records have holes, repeats, damage, delays, transactions and illegal queues, and index files roll."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        with (
            patch.object(OpenQueues, "append", lambda _, groups: list(range(QueueGroups.__len__(groups)))),
            patch.object(index_file, "_FEW_KEYS", -1),
            patch.object(index_file, "_KEYS_A_RECORD", 0),
        ):
            whole = built(Path(other), drawn, set())
        assert built(Path(one), drawn, cuts) == whole
