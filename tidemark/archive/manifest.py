"""`manifest.json` of an archive: its messages and files.

It is written last and replaced atomically. Files that it does not name belong to a run that was killed.
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
EXPIRED, NOT_STORED = "EXPIRED", "NOT_STORED"  # further reasons, see LeftOut


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StoreIdentity(_Part):
    """Facts by which a store is recognised, in addition to the last archived record of each queue."""

    store_name: str
    log_file_size: int
    term: int  # the writer's term at the last run


class ArchivedQueue(_Part):
    """Archived range of one queue: first ≤ queue offset < next, except for messages that were left out.

    last_queue_offset, last_physical_offset: of the last archived message; None if there is none
    """

    topic: str
    queue_id: int
    first: int
    next: int
    rows: int
    last_queue_offset: int | None = None
    last_physical_offset: int | None = None


class ArchivedFile(_Part):
    """One Parquet file. path: relative to the archive's folder; minimum and maximum values are inclusive."""

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
            raise ValueError("path must be relative, without '..'")
        return path


class LeftOut(_Part):
    """Messages of an archived queue that the archive does not contain: first ≤ queue offset < next.

    reason  the record's reason in the ledger (`tidemark store corruptions`); NOT_STORED: the log has no such message;
            EXPIRED: retention deleted it before it was archived
    """

    topic: str
    queue_id: int
    first: int
    next: int
    reason: str
    physical_offset: int | None = None


class ArchivedDamage(_Part):
    """A place in the log that the pipeline's ledger lists; its queue is None if the record could not be decoded."""

    physical_offset: int
    size: int
    reason: str
    topic: str | None
    queue_id: int | None
    queue_offset: int | None


class ArchiveManifest(_Part):
    """An archive. physical_end: end of the last run's range of the log; options: of the last run."""

    written_by: str
    written_ms: int
    store: StoreIdentity
    physical_end: int
    options: dict[str, Any] = Field(default_factory=dict)
    queues: tuple[ArchivedQueue, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    ledger: tuple[ArchivedDamage, ...] = ()
    files: tuple[ArchivedFile, ...] = ()

    @property
    def rows(self) -> int:
        """Number of messages."""
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """Total bytes of all files."""
        return sum(file.size for file in self.files)

    def by_queue(self) -> dict[tuple[str, int], ArchivedQueue]:
        """Return the queues by topic and id."""
        return {(queue.topic, queue.queue_id): queue for queue in self.queues}


def save_manifest(folder: Path, manifest: ArchiveManifest, storage: Storage) -> None:
    """Write the manifest durably. The archive is complete when this returns."""
    content = {"version": VERSION, **manifest.model_dump()}
    replace_file(storage, folder / NAME, orjson.dumps(content, option=orjson.OPT_INDENT_2), keep_previous=False)


def load_manifest(folder: Path) -> ArchiveManifest:
    """Read the manifest of the archive in *folder*.

    Raises FileNotFoundError if there is none, CorruptStoreError if it is damaged, StoreTooNewError for a later version.
    """
    path = folder / NAME
    data = path.read_bytes()
    try:
        content = orjson.loads(data)
        version = content.pop("version")
        if version > VERSION:
            raise StoreTooNewError(
                f"{path} has version {version}, newer than the supported version {VERSION}", path=str(path)
            )
        return ArchiveManifest.model_validate_json(orjson.dumps(content))
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptStoreError(f"{path} is not a valid archive manifest", path=str(path)) from error
