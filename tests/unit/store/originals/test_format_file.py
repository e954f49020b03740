"""The format file: written once; every service refuses a newer major version."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from services.indexer.pipeline.__main__ import main as pipeline_main
from services.indexer.query.config import QuerySettings
from services.indexer.query.server import serve
from services.writer.config import WriterSettings
from services.writer.log.open_store import open_store, release_store
from tidemark.errors import CorruptStoreError, StoreTooNewError
from tidemark.store.originals.format_file import (
    FORMAT,
    FormatVersion,
    read_format,
    require_known_format,
    write_format,
)
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    return StorePaths(tmp_path)


def write_version(paths: StorePaths, major: int, minor: int) -> bytes:
    """Write a format file of that version, and return its bytes."""
    paths.format_file.parent.mkdir(exist_ok=True)
    content = json.dumps({"version": {"major": major, "minor": minor}, "written_by": "tidemark 9"}).encode()
    paths.format_file.write_bytes(content)
    return content


def test_a_store_without_a_format_file_has_no_version(paths: StorePaths) -> None:
    """The store is a broker's, or an older Tidemark's: there is no version and no error."""
    assert require_known_format(paths) is None


def test_the_writer_records_its_version_when_it_opens_a_store(paths: StorePaths) -> None:
    """The file has the version and the program."""
    store = open_store(WriterSettings(store_root=paths.root, commit_log_segment_size_bytes=1 << 16), DiskStorage())
    release_store(store)
    assert read_format(paths) == FORMAT
    assert json.loads(paths.format_file.read_bytes())["written_by"].startswith("tidemark ")


def test_an_older_minor_version_is_raised_and_a_newer_one_kept(paths: StorePaths) -> None:
    """An older program may open a newer minor version, but does not lower it."""
    write_version(paths, FORMAT.major, FORMAT.minor - 1)
    write_format(paths, DiskStorage())
    assert read_format(paths) == FORMAT
    newer = write_version(paths, FORMAT.major, FORMAT.minor + 1)
    write_format(paths, DiskStorage())
    assert require_known_format(paths) == FormatVersion(FORMAT.major, FORMAT.minor + 1)
    assert paths.format_file.read_bytes() == newer


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"version": 1}', b'{"version": {"major": "x", "minor": 0}}', b"\0" * 9]
)
def test_a_format_file_without_a_version_is_damage(paths: StorePaths, content: bytes) -> None:
    """The meaning of zero bytes is not guessed."""
    paths.format_file.parent.mkdir()
    paths.format_file.write_bytes(content)
    with pytest.raises(CorruptStoreError):
        require_known_format(paths)


def open_as_writer(root: Path) -> None:
    open_store(WriterSettings(store_root=root), DiskStorage())


def open_as_query(root: Path) -> None:
    serve(QuerySettings(store_root=root))


@pytest.mark.parametrize("open_it", [open_as_writer, open_as_query])
def test_a_newer_major_version_is_refused_before_any_write(paths: StorePaths, open_it: Callable[[Path], None]) -> None:
    """The message has both versions; no file is created or changed."""
    write_version(paths, FORMAT.major + 1, 0)
    with pytest.raises(StoreTooNewError, match=rf"format {FORMAT.major + 1}\.0.*formats up to {FORMAT.major}\.x"):
        open_it(paths.root)
    assert [path for path in paths.root.rglob("*") if path.is_file()] == [paths.format_file]


def test_the_pipeline_exits_with_1_on_a_newer_major_version(
    paths: StorePaths, capfd: pytest.CaptureFixture[str]
) -> None:
    """One event gives the reason, and no file is created."""
    write_version(paths, FORMAT.major + 1, 0)
    assert pipeline_main(["--store-root", str(paths.root), "--once"]) == 1
    assert "StoreTooNewError" in capfd.readouterr().err
    assert not paths.indexer.exists()
