"""Archives of a running broker's directory."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.built_store import BuiltStore
from tests.integration.attach.attached import attach, look_at
from tidemark.archive.against import compare_with_store
from tidemark.archive.options import ArchiveOptions, ArchiveSource
from tidemark.archive.run import run_archive
from tidemark.archive.verify import verify_archive


@pytest.mark.exhaustive
def test_an_attached_brokers_messages_are_archived(spark: SparkSession, tmp_path: Path) -> None:
    """The broker keeps writing; nothing of its directory is changed."""
    broker, folder = BuiltStore(tmp_path / "broker", marked=False), tmp_path / "archive"
    broker.topic("orders", queues=2)
    source = ArchiveSource(broker.root, tmp_path / "state")
    with attach(broker.root, tmp_path / "state") as attached:
        for rows in (10, 20):
            for number in range(10):
                broker.append("orders", b"%d" % number, queue_id=number % 2)
            attached.wait_for_watermark(broker.end)
            before = look_at(broker.root)
            options = ArchiveOptions(all_records=True)
            run = run_archive(source, folder, options, lambda: contextlib.nullcontext(spark))
            assert (len(run.files), run.manifest.rows) == (1, rows)
            assert look_at(broker.root) == before
        verified = verify_archive(folder)
        assert verified.findings == []
        compared = compare_with_store(spark, folder, verified.manifest, source)
        assert (compared.findings, compared.rows, compared.gone) == ([], 20, 0)
