"""Answers about the log's files, as OpenAPI describes them; see models.py."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from .responses import WatermarkAnswer


class LogFileAnswer(BaseModel):
    """One file of the CommitLog."""

    start: int = Field(description="physical offset of its first byte, which names the file")
    first_store_ms: int | None = Field(description="store time of its first record; null where none can be read")
    blank_at: int | None = Field(
        description="physical offset of the blank record that fills its end; null where it is not full"
    )


class LogAnswer(BaseModel):
    """How far the log is written, flushed, committed and indexed, and a page of its files."""

    store: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    min_physical_offset: int
    written_offset: int = Field(description="end of the records whose heads can be seen in the files")
    flushed_offset: int | None = Field(description="synced by the writer; null where no writer has told it")
    durable_offset: int | None = Field(description="indexed, and the index synced; null while it was never indexed")
    file_size_bytes: int
    file_count: int
    limit: int
    next_from: int | None = Field(description="where the next page begins; null: there is none")
    files: list[LogFileAnswer]


class LogRecordAnswer(BaseModel):
    """What lies at a place of the log. What only a record has is null for the others."""

    physical_offset: int
    size: int
    kind: Literal["V1", "V2", "BLANK", "GAP"] = Field(
        description="a record of that magic; the blank end of a file; bytes in which no record starts: the rest of one "
        "where the page begins, else damage"
    )
    fault: str | None = Field(description="what is wrong there, as in the ledger of damage; null: nothing")
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    message_count: int | None = Field(description="more than 1 for an inner batch")
    store_timestamp_ms: int | None


class LogRecordsAnswer(BaseModel):
    """Records in the order of the log, committed ones only."""

    store: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    max: int
    next_from: int = Field(description="where the next page begins; the committed offset at the end")
    records: list[LogRecordAnswer]


class LogBytesAnswer(BaseModel):
    """Bytes of one file, as stored: nothing in them is checked."""

    store: str
    physical_offset: int
    file_start: int
    size: int
    data: str = Field(description="base64")
