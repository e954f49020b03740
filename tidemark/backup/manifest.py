"""`manifest.json` of a backup: what it holds, and how each file is known again (docs/format.md §12).

It is written last, whole: a backup is what its manifest says. Whatever else lies there is of a backup that was killed.
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
    """One file. path: below the store's root; stored: below the backup's; sealed: a log file that cannot change."""

    path: str
    stored: str
    size: int
    sha256: str
    sealed: bool = False


@dataclass(frozen=True)
class Manifest:
    """A backup. start, end: the stretch of the log, physical; end is exclusive, and a record's edge."""

    store_name: str
    term: int
    start: int
    end: int
    log_file_size: int
    taken_ms: int
    files: tuple[BackedFile, ...]

    def sealed(self) -> dict[str, BackedFile]:
        """Sealed log files by their path in the store."""
        return {file.path: file for file in self.files if file.sealed}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def save_manifest(folder: Path, manifest: Manifest, storage: Storage) -> None:
    """Durable when this returns. From here on the backup is this one."""
    content = {"version": VERSION, **asdict(manifest)}
    replace_file(storage, folder / NAME, orjson.dumps(content, option=orjson.OPT_INDENT_2), keep_previous=False)


def load_manifest(folder: Path) -> Manifest:
    """The backup in *folder*.

    raises FileNotFoundError where none was finished, CorruptStoreError, StoreTooNewError for a version we do not know
    """
    path = folder / NAME
    try:
        content = orjson.loads(path.read_bytes())
        version = content.pop("version")
        if version > VERSION:
            raise StoreTooNewError(f"{path} has version {version}, and this program knows {VERSION}", path=str(path))
        files = tuple(BackedFile(**file) for file in content.pop("files"))
        if any(Path(name).is_absolute() or ".." in Path(name).parts for f in files for name in (f.path, f.stored)):
            raise ValueError("a path that leads out of the folder")
        return Manifest(**content, files=files)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptStoreError(f"{path} is no manifest of a backup", path=str(path)) from error
