"""The page cache of a store's files while they are written."""

from __future__ import annotations

import threading
from pathlib import Path

from benchmarks.page_cache import drop_page_cache, files_of, sync_files


def test_deleted_files_are_not_an_error(tmp_path: Path) -> None:
    """A broker replaces its small files all the time."""
    kept = tmp_path / "kept"
    kept.write_bytes(b"x" * 10)
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            temporary = tmp_path / "config.tmp"
            temporary.write_bytes(b"x" * 10)
            temporary.unlink()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(300):
            sync_files(tmp_path)
            drop_page_cache(files_of(tmp_path))
            assert kept in files_of(tmp_path, least_bytes=10)
    finally:
        over.set()
        thread.join()


def test_a_file_deleted_since_it_was_listed_is_skipped(tmp_path: Path) -> None:
    """A broker removes its temporary files in the meantime."""
    drop_page_cache([tmp_path / "config.tmp"])
