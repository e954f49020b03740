"""A store of several kinds of topics, archived on the Spark session that all tests of a run share."""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.built_store import BuiltStore
from tests.integration.spark.conftest import spark
from tidemark.archive.options import ArchiveOptions, ArchiveSource
from tidemark.archive.progress import Progress, no_progress
from tidemark.archive.run import Archived, run_archive

__all__ = ["spark"]

DAY_MS = 86_400_000
RETRY = "%RETRY%billing|eu"


class Case(NamedTuple):
    """A store and the folder of its archive."""

    store: BuiltStore
    folder: Path
    spark: SparkSession

    def archive(self, on_progress: Progress = no_progress, **options: Any) -> Archived:
        """Run the archive once."""
        return run_archive(
            ArchiveSource(self.store.root),
            self.folder,
            ArchiveOptions(**options),
            lambda: contextlib.nullcontext(self.spark),
            on_progress=on_progress,
        )


def fill(store: BuiltStore, count: int, *, days: int = 2) -> None:
    """Write single messages of two topics over several days, some compressed, and inner batches; make them visible."""
    first = store.clock
    for number in range(count):
        at = first + 1 + number * days * DAY_MS // count
        entries = {"TAGS": "AB"[number % 2], "KEYS": f"k{number} all", "UNIQ_KEY": f"u{at}", "x": "y", "z": str(number)}
        store.append("orders", b"order %d" % number * 9, entries, queue_id=number % 3, at_ms=at)
        if number % 3 == 0:
            store.append(RETRY, zlib.compress(b"again" * 50), {"TAGS": "ü"}, sys_flag=0x1, at_ms=at)
        if number % 7 == 0:
            store.append_batch("batches", [(b"b%d" % i, {"TAGS": "A"}, i) for i in range(1 + number % 4)], at_ms=at)
    store.publish()


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> Case:
    """Return topics `orders` of three queues, one of inner batches, and one whose name must be escaped in a path."""
    store = BuiltStore(tmp_path / "store", log_file_size=16_384)
    store.topic("orders", queues=3)
    store.topic("batches", batch=True)
    store.topic(RETRY)
    fill(store, 120)
    return Case(store, tmp_path / "archive", spark)
