"""Certificate files that change under a running service."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.certificates import Pair
from tidemark.errors import StoreError
from tidemark.tls.reloading import Reloading
from tidemark.tls.server_files import ClientAuth, ServerFiles


class Watched:
    """A pair of files, and the log events about them."""

    def __init__(self, folder: Path, pair: Pair) -> None:
        self.files = Pair(folder / "cert.pem", folder / "key.pem")
        pair.put(self.files)
        self.told: list[StoreError | None] = []
        files = ServerFiles(self.files.cert, self.files.key, None, ClientAuth.NONE)
        self.tls = Reloading(files, every_ms=10_000, on_reload=self.told.append)


@pytest.fixture
def watched(tmp_path: Path, server: Pair) -> Watched:
    return Watched(tmp_path, server)


def test_unchanged_tls_files_are_not_reloaded(watched: Watched) -> None:
    before = watched.tls.current
    watched.tls.look()
    assert watched.tls.current is before
    assert watched.told == []


def test_new_tls_files_are_loaded(watched: Watched, other: Pair) -> None:
    other.put(watched.files)
    watched.tls.look()
    assert watched.tls.current.cert == other.cert.read_bytes()
    assert watched.told == [None]


def test_invalid_tls_files_keep_the_old_ones_and_are_reported_once(watched: Watched, server: Pair, other: Pair) -> None:
    """The service loads them again once they are valid."""
    watched.files.cert.write_text("broken")
    watched.tls.look()
    watched.tls.look()
    assert watched.tls.current.cert == server.cert.read_bytes()
    assert watched.tls.reload_failed
    (fault,) = watched.told
    assert fault is not None
    assert fault.path == str(watched.files.cert)
    other.put(watched.files)
    watched.tls.look()
    assert watched.tls.current.cert == other.cert.read_bytes()
    assert not watched.tls.reload_failed
    assert watched.told == [fault, None]


def test_a_new_certificate_is_used_once_its_key_is_replaced(watched: Watched, server: Pair, other: Pair) -> None:
    """Files are replaced one after the other."""
    shutil.copyfile(other.cert, watched.files.cert)
    watched.tls.look()
    assert watched.tls.current.cert == server.cert.read_bytes()
    shutil.copyfile(other.key, watched.files.key)
    watched.tls.look()
    assert watched.tls.current.cert == other.cert.read_bytes()


def test_a_deleted_tls_file_keeps_the_old_one(watched: Watched, server: Pair) -> None:
    watched.files.key.unlink()
    watched.tls.look()
    assert watched.tls.current.cert == server.cert.read_bytes()
    assert watched.tls.reload_failed


def test_an_expired_certificate_is_not_loaded(watched: Watched, server: Pair, expired: Pair) -> None:
    expired.put(watched.files)
    watched.tls.look()
    assert watched.tls.current.cert == server.cert.read_bytes()
    (fault,) = watched.told
    assert "certificate has expired" in str(fault)
