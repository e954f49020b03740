"""delayOffset.json as RocketMQ and Tidemark write it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.errors import CorruptStoreError
from tidemark.store.originals.delay_offsets import DelayOffsets, load_delay_offsets, save_delay_offsets
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    return StorePaths(tmp_path).delay_offsets


def test_saved_delay_offsets_are_loaded_unchanged(path: Path) -> None:
    """The names are those that a broker reads; levels are in order."""
    save_delay_offsets(path, DelayOffsets(3, {12: 5, 4: 7}), DiskStorage())
    assert load_delay_offsets(path) == DelayOffsets(3, {4: 7, 12: 5})
    content = json.loads(path.read_text())
    assert list(content) == ["dataVersion", "offsetTable"]
    assert list(content["offsetTable"].items()) == [("4", 7), ("12", 5)]
    assert content["dataVersion"].keys() == {"counter", "stateVersion", "timestamp"}


def test_delay_offsets_of_a_broker_are_loaded(golden_store: Callable[[str], Path]) -> None:
    """The file is from a real store."""
    assert load_delay_offsets(StorePaths(golden_store("mixed/store")).delay_offsets).table == {1: 3, 2: 3, 3: 3}


def test_a_missing_delay_offsets_file_gives_no_offsets(path: Path) -> None:
    """Every level begins at 0."""
    assert load_delay_offsets(path) == DelayOffsets(0, {})


def test_a_torn_delay_offsets_file_is_replaced_by_its_checked_copy(path: Path) -> None:
    """As for the other config files, nothing of the last write is lost."""
    for counter in (1, 2):
        save_delay_offsets(path, DelayOffsets(counter, {1: counter}), DiskStorage())
    path.write_bytes(path.read_bytes()[:20])
    assert load_delay_offsets(path) == DelayOffsets(2, {1: 2})


@pytest.mark.parametrize("content", ["{", "[1]", '{"offsetTable":[1]}', '{"offsetTable":{"x":1}}', '{"dataVersion":3}'])
def test_an_invalid_delay_offsets_file_is_damage(path: Path, content: str) -> None:
    """Damage differs from an empty file."""
    path.write_text(content)
    with pytest.raises(CorruptStoreError) as refused:
        load_delay_offsets(path)
    assert refused.value.facts["path"] == str(path)
