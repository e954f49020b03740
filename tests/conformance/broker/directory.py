"""A store's directory as files: the allowed files, and the common content of two directories."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

from tests.pipeline_runs import DERIVED

_UNITS = {"consumequeue": 20, "batchconsumequeue": 46}
_NAME_LENGTHS = {"commitlog": 20, "index": 17}


def copy_store(source: Path, target: Path) -> Path:
    """Copy a store and keep its holes."""
    subprocess.run(["cp", "-a", "--sparse=always", str(source), str(target)], check=True)
    return target


def drop_derived(root: Path) -> None:
    """Delete all queue files and the index."""
    for folder in DERIVED:
        shutil.rmtree(root / folder, ignore_errors=True)


def check_nothing_foreign(root: Path) -> None:
    """Check that the folders that a broker loads contain only its own kinds of files, of one size in each folder."""
    for folder in ("commitlog", "index"):
        _check_folder(root / folder, _NAME_LENGTHS[folder])
    for folder in _UNITS:
        for topic in sorted((root / folder).glob("*")):
            assert topic.is_dir(), topic
            for queue in sorted(topic.iterdir()):
                assert queue.is_dir() and queue.name.isdigit(), queue
                _check_folder(queue, 20)


def _check_folder(folder: Path, name_length: int) -> None:
    files = sorted(folder.glob("*"))
    for path in files:
        assert path.is_file() and path.name.isdigit() and len(path.name) == name_length, path
    assert len({path.stat().st_size for path in files}) <= 1, folder


def queue_units(root: Path, *, below: int) -> dict[str, bytes]:
    """Return the non-empty units, by file, of records that start below physical offset *below*."""
    found = {}
    for folder, size in _UNITS.items():
        for path in sorted((root / folder).glob("*/*/*")):
            data = path.read_bytes()
            end = _end_of_units(data, size, below)
            if end:
                found[str(path.relative_to(root))] = data[:end]
    return found


def _end_of_units(data: bytes, size: int, below: int) -> int:
    for at in range(0, len(data) - size + 1, size):
        physical_offset, message_size = struct.unpack_from(">qi", data, at)
        if message_size <= 0 or physical_offset >= below:
            return at
    return len(data) - len(data) % size
