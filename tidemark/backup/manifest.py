"""`manifest.json` of a backup: its files and their hashes (docs/format.md §12).

It is written last and replaced atomically. Files that it does not name belong to a run that was killed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from tidemark.errors import CorruptStoreError, StoreTooNewError
from tidemark.store.storage import Storage, replace_file

NAME = "manifest.json"
VERSION = 1


@dataclass(frozen=True)
class BackedFile:
    """One file of a backup.

    path: relative to the store's root; stored: relative to the backup's folder; sealed: a log file that cannot change
    """

    path: str
    stored: str
    size: int
    sha256: str
    sealed: bool = False


@dataclass(frozen=True)
class BackupManifest:
    """A backup. start, end: physical range of the log; end is exclusive and a record boundary."""

    store_name: str
    term: int
    start: int
    end: int
    log_file_size: int
    taken_ms: int
    files: tuple[BackedFile, ...]

    def sealed(self) -> dict[str, BackedFile]:
        """Return the sealed log files by their path in the store."""
        return {file.path: file for file in self.files if file.sealed}

    @property
    def size(self) -> int:
        """Total bytes of all files."""
        return sum(file.size for file in self.files)


def save_manifest(folder: Path, manifest: BackupManifest, storage: Storage) -> None:
    """Write the manifest durably. The backup is complete when this returns."""
    content = {"version": VERSION, **asdict(manifest)}
    replace_file(storage, folder / NAME, orjson.dumps(content, option=orjson.OPT_INDENT_2), keep_previous=False)


def load_manifest(folder: Path) -> BackupManifest:
    """Read the manifest of the backup in *folder*.

    Raises FileNotFoundError if no backup was finished, CorruptStoreError if it is damaged, StoreTooNewError for a later
    version.
    """
    path = folder / NAME
    try:
        content = orjson.loads(path.read_bytes())
        version = content.pop("version")
        if version > VERSION:
            raise StoreTooNewError(
                f"{path} has version {version}, newer than the supported version {VERSION}", path=str(path)
            )
        files = tuple(BackedFile(**file) for file in content.pop("files"))
        if any(Path(name).is_absolute() or ".." in Path(name).parts for f in files for name in (f.path, f.stored)):
            raise ValueError("path and stored must be relative, without '..'")
        return BackupManifest(**content, files=files)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptStoreError(f"{path} is not a valid backup manifest", path=str(path)) from error
