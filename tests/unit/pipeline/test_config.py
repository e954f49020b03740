"""Settings of the pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from services.indexer.pipeline.config import PipelineSettings
from tidemark.settings.engine import Engine


def test_environment_names_are_the_promised_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is TIDEMARK_ and the field's name in capitals; scripts rely on them."""
    given = {
        "STORE_ROOT": "/somewhere",
        "ONCE": "true",
        "PIPELINE": "plain",
        "SHARDS": "3",
        "EPOCH_MS": "500",
        "INDEX_SLOTS": "77",
        "COMMIT_LOG_SEGMENT_SIZE_BYTES": "8192",
        "PIPELINE_METRICS_LISTEN": "[::1]:99",
        "TRACES": "otlp",
    }
    for name, value in given.items():
        monkeypatch.setenv(f"TIDEMARK_{name}", value)
    settings = PipelineSettings()
    assert (str(settings.store_root), settings.once, settings.runs_spark) == ("/somewhere", True, False)
    assert (settings.shards, settings.epoch_ms, settings.index_slots) == (3, 500, 77)
    assert (settings.commit_log_segment_size_bytes, settings.pipeline_metrics_listen) == (8192, "[::1]:99")
    assert settings.traces == "otlp"


@pytest.mark.parametrize(
    "wrong",
    [
        {"pipeline": "flink"},
        {"spark_restart_pause_ms": 999},
        {"shards": 0},
        {"shards": 65},
        {"epoch_ms": -1},
        {"chunk_size_bytes": 4095},
        {"commit_log_segment_size_bytes": 1},
        {"index_entries": 1},
        {"lease_ms": 499},
        {"set_aside_files": -1},
        {"start_timeout_s": 0},
        {"pipeline_metrics_listen": "8083"},
        {"pipeline_metrics_listen": "metrics.example:8083"},
        {"commit_log_paths": "a", "commit_log_read_only_paths": "a"},
    ],
    ids=str,
)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    """The refusal comes at the start, before a file is opened."""
    with pytest.raises(ValidationError):
        PipelineSettings(**wrong)  # type: ignore[arg-type]


def test_the_pipeline_may_run_without_spark() -> None:
    assert not PipelineSettings(pipeline=Engine.PLAIN).runs_spark


def test_the_folders_of_the_log_are_below_the_store_unless_absolute(tmp_path: Path) -> None:
    """The folder of a relative path does not depend on the process's working directory."""
    settings = PipelineSettings(commit_log_paths="disk-b, /elsewhere/log", commit_log_read_only_paths="old,")
    folders = settings.log_folders(tmp_path)
    assert folders.writable == (Path("/elsewhere/log"), tmp_path / "disk-b")
    assert folders.read_only == (tmp_path / "old",)
    assert PipelineSettings().log_folders(tmp_path).all == (tmp_path / "commitlog",)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 0),
        ({"traces": "otlp"}, 100),
        ({"traces": "otlp", "trace_max_messages": 7}, 7),
        ({"traces": "otlp", "once": True}, 0),
    ],
    ids=str,
)
def test_messages_are_traced_only_while_the_log_is_followed(settings: dict[str, object], expected: int) -> None:
    """A drain makes no spans (docs/tracing.md)."""
    assert PipelineSettings(**settings).traced_messages == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("master", "is_local"), [("", True), ("local[4]", True), ("local", True), ("spark://there:7077", False)]
)
def test_tasks_run_here_unless_the_master_is_a_clusters(master: str, is_local: bool) -> None:
    assert PipelineSettings(spark_master=master).is_local is is_local


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        setattr(PipelineSettings(), "shards", 2)  # noqa: B010 - mypy knows it is frozen


def test_every_setting_is_described() -> None:
    """`--help` and the table in docs/settings.md show the descriptions."""
    for name, field in PipelineSettings.model_fields.items():
        assert field.description, name
