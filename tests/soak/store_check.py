"""The files at the end: queues and index must equal those of one pass over the log elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.pipeline_runs import build, index_contents, plan_of, queue_files, without_derived
from tests.soak.facts import Violation
from tests.soak.stack import SIZES
from tidemark.index.ledger import read_ledger
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths

RULE = "store"
_SETTINGS = {name.lower(): size for name, size in SIZES.items()}


def check_store(store: Path, scratch: Path) -> list[Violation]:
    """Check a store that was stopped in order."""
    return [Violation(RULE, text) for text in _faults(store, scratch)]


def _faults(store: Path, scratch: Path) -> Iterator[str]:
    if ledger := read_ledger(StorePaths(store).indexer):
        yield f"the ledger of damage holds {len(ledger)} entries, the first {ledger[0]}"
    rebuilt = without_derived(store, scratch / "rebuilt")
    shutil.rmtree(StorePaths(rebuilt).indexer)
    plan = plan_of(rebuilt, **_SETTINGS)
    build(plan)
    marks = Marks.open_read_only(StorePaths(store).marks)
    if marks.watermark() != plan.limit or marks.durable_floor() != plan.limit:
        yield f"the marks are {marks.watermark()}, durable {marks.durable_floor()}; the log ends at {plan.limit}"
    found, expected = queue_files(store), queue_files(rebuilt)
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            yield f"{name} differs from a rebuild: {_difference(found.get(name), expected.get(name))}"
    if index_contents(store) != index_contents(rebuilt):
        yield f"the index differs from a rebuild: {len(os.listdir(store / 'index'))} files"
    shutil.rmtree(rebuilt)


def _difference(found: bytes | None, expected: bytes | None) -> str:
    if found is None or expected is None:
        return "it is missing" if found is None else "it should not be there"
    at = next((i for i, (one, other) in enumerate(zip(found, expected, strict=False)) if one != other), None)
    return f"{len(found)} bytes, not {len(expected)}" if at is None else f"byte {at} differs"
