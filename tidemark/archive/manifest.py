"""`manifest.json` of an archive: which messages it holds, and in which files.

It is written last, whole: an archive is what its manifest says. Whatever else lies there is of a run that was killed.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tidemark.errors import CorruptStoreError, StoreTooNewError
from tidemark.store.storage import Storage, replace_file

NAME = "manifest.json"
VERSION = 1
EXPIRED, NOT_STORED = "EXPIRED", "NOT_STORED"  # reasons beside those of damage: see LeftOut


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StoreIdentity(_Part):
    """How a store is known again, beside the last record that is archived of each queue."""

    store_name: str
    log_file_size: int
    term: int  # of its writer, when it was archived last


class ArchivedQueue(_Part):
    """What of one queue is archived: first ≤ queue offset < next, but for what was left out.

    last_queue_offset, last_physical_offset: of the last message that is archived; None where there is none
    """

    topic: str
    queue_id: int
    first: int
    next: int
    rows: int
    last_queue_offset: int | None = None
    last_physical_offset: int | None = None


class ArchivedFile(_Part):
    """One Parquet file. path: below the archive's folder; least and greatest values are inclusive."""

    path: str
    topic: str
    day: str
    rows: int
    size: int
    sha256: str
    min_queue_id: int
    max_queue_id: int
    min_queue_offset: int
    max_queue_offset: int
    min_physical_offset: int
    max_physical_offset: int
    min_store_timestamp_ms: int
    max_store_timestamp_ms: int

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ValueError("leads out of the folder")
        return path


class LeftOut(_Part):
    """Messages of an archived queue that are not in it: first ≤ queue offset < next.

    reason  a record's as in the ledger (`tidemark store corruptions`); NOT_STORED: the log holds no such message;
            EXPIRED: retention had deleted it before it was archived
    """

    topic: str
    queue_id: int
    first: int
    next: int
    reason: str
    physical_offset: int | None = None


class Damage(_Part):
    """A place of the log that the pipeline's ledger names; where it could not be decoded, nobody knows its queue."""

    physical_offset: int
    size: int
    reason: str
    topic: str | None
    queue_id: int | None
    queue_offset: int | None


class Manifest(_Part):
    """An archive. physical_end: how far of the log the last run went; options: its own."""

    written_by: str
    written_ms: int
    store: StoreIdentity
    physical_end: int
    options: dict[str, Any] = Field(default_factory=dict)
    queues: tuple[ArchivedQueue, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    ledger: tuple[Damage, ...] = ()
    files: tuple[ArchivedFile, ...] = ()

    @property
    def rows(self) -> int:
        """Messages in it."""
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def by_queue(self) -> dict[tuple[str, int], ArchivedQueue]:
        """Queues by topic and id."""
        return {(queue.topic, queue.queue_id): queue for queue in self.queues}


def save_manifest(folder: Path, manifest: Manifest, storage: Storage) -> None:
    """Durable when this returns. From here on the archive is this one."""
    content = {"version": VERSION, **manifest.model_dump()}
    replace_file(storage, folder / NAME, orjson.dumps(content, option=orjson.OPT_INDENT_2), keep_previous=False)


def load_manifest(folder: Path) -> Manifest:
    """The archive in *folder*.

    raises FileNotFoundError where there is none, CorruptStoreError, StoreTooNewError for a version we do not know
    """
    path = folder / NAME
    data = path.read_bytes()
    try:
        content = orjson.loads(data)
        version = content.pop("version")
        if version > VERSION:
            raise StoreTooNewError(f"{path} has version {version}, and this program knows {VERSION}", path=str(path))
        return Manifest.model_validate_json(orjson.dumps(content))
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptStoreError(f"{path} is no manifest of an archive", path=str(path)) from error
