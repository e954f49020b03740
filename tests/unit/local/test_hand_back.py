from __future__ import annotations

from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tidemark.errors import UnavailableError
from tidemark.local import hand_back as module
from tidemark.local.hand_back import hand_back
from tidemark.store.checkpoint import Checkpoint
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage


class Steps:
    """Stands in for the two services. written_to: the number of marks before which the writer appends something."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, *, written_to: int) -> None:
        self.drains, self.starts = 0, 0
        self._abort = StorePaths(root).abort
        self._written_to = written_to
        monkeypatch.setattr(module, "_drain", self._drain)
        monkeypatch.setattr(module, "_start_and_stop_writer", self._start)

    def _drain(self, _: StorePaths) -> None:
        self.drains += 1

    def _start(self, _: StorePaths) -> None:
        self.starts += 1
        if self.drains > self._written_to:
            self._abort.unlink(missing_ok=True)
        else:
            self._abort.touch()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store = BuiltStore(tmp_path / "store")
    store.topic("t")
    store.append("t", b"x")
    store.publish()
    Checkpoint.open_to_write(StorePaths(store.root).checkpoint, DiskStorage()).close()
    return store.root


@pytest.mark.parametrize("written_to", [0, 1, 4])
def test_what_the_writer_delivers_meanwhile_is_built_too(
    root: Path, monkeypatch: pytest.MonkeyPatch, written_to: int
) -> None:
    steps = Steps(root, monkeypatch, written_to=written_to)
    hand_back(root)
    assert (steps.drains, steps.starts) == (written_to + 1, written_to + 2)


def test_a_store_that_is_written_to_at_every_try_is_not_handed_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Steps(root, monkeypatch, written_to=5)
    with pytest.raises(UnavailableError, match="each of 5 tries"):
        hand_back(root)
