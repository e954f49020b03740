"""Copying of one file with its hash. Holes stay holes, and the file gets its final name only after it is synced."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from tidemark.errors import CorruptStoreError
from tidemark.store.storage import Storage

_STEP = 4 << 20
_ZEROS = bytes(_STEP)
Advance = Callable[[int], None]  # called with the number of bytes processed


def copy_file(
    source: int, size: int, target: Path, storage: Storage, *, full_size: int | None = None, advance: Advance
) -> str:
    """Copy the first *size* bytes of descriptor *source* to *target* and return their SHA-256 in hexadecimal.

    full_size  size of the new file, filled with zeros; default: *size*

    Raises CorruptStoreError if the source is shorter.
    """
    temporary = target.with_name(target.name + ".tmp")
    storage.make_folder(target.parent)
    if temporary.exists():
        storage.unlink(temporary)
    descriptor = storage.create(temporary, size if full_size is None else full_size)
    try:
        digest = _copy(source, size, descriptor, storage, advance)
        storage.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    storage.rename(temporary, target)
    return digest


def _copy(source: int, size: int, target: int, storage: Storage, advance: Advance) -> str:
    digest = hashlib.sha256()
    at = 0
    while at < size:
        data = os.pread(source, min(_STEP, size - at), at)
        if not data:
            raise CorruptStoreError(f"a file ends after {at} bytes, expected {size}")
        digest.update(data)
        if data != _ZEROS[: len(data)]:
            storage.pwrite(target, data, at)
        at += len(data)
        advance(len(data))
    return digest.hexdigest()


def write_file(target: Path, data: bytes, storage: Storage) -> str:
    """Write *data* durably to a new file and return its SHA-256 in hexadecimal."""
    storage.make_folder(target.parent)
    descriptor = storage.create(target, len(data))
    try:
        storage.pwrite(descriptor, data, 0)
        storage.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    return hashlib.sha256(data).hexdigest()


def hash_file(path: Path, *, advance: Advance) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_STEP):
            digest.update(data)
            advance(len(data))
    return digest.hexdigest()
