"""Answers about the log's files, as OpenAPI describes them; see responses.py."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from .responses import WatermarkAnswer


class LogFileAnswer(BaseModel):
    """One file of the CommitLog."""

    start: int = Field(description="physical offset of the file's first byte, which names the file")
    first_store_ms: int | None = Field(description="store time of its first record; null if it cannot be read")
    blank_at: int | None = Field(
        description="physical offset of the blank record that fills the file's end; null if the file is not full"
    )


class LogAnswer(BaseModel):
    """Written, flushed, committed and indexed positions of the log, and a page of its files."""

    store: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    min_physical_offset: int
    written_offset: int = Field(description="end of the records whose heads are in the files")
    flushed_offset: int | None = Field(description="end of the synced log; null if no writer has reported it")
    durable_offset: int | None = Field(description="end of the log whose index is synced; null: never indexed")
    file_size_bytes: int
    file_count: int
    limit: int
    next_from: int | None = Field(description="physical offset where the next page begins; null: this is the last page")
    files: list[LogFileAnswer]


class LogRecordAnswer(BaseModel):
    """A record, a blank end of a file, or a gap. The fields from `topic` on are null unless it is a record."""

    physical_offset: int
    size: int
    kind: Literal["V1", "V2", "BLANK", "GAP"] = Field(
        description="V1, V2: a record with this magic; BLANK: the blank end of a file; GAP: bytes in which no record "
        "starts: the rest of a record at the start of the page, damage anywhere else"
    )
    fault: str | None = Field(description="reason of the damage, as in the ledger; null: undamaged")
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    message_count: int | None = Field(description="number of messages in the record; more than 1: an inner batch")
    store_timestamp_ms: int | None


class LogRecordsAnswer(BaseModel):
    """A page of committed records in the order of the log."""

    store: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    max: int
    next_from: int = Field(description="physical offset where the next page begins; at the end the committed offset")
    records: list[LogRecordAnswer]


class LogBytesAnswer(BaseModel):
    """Bytes of one CommitLog file, as stored and unchecked."""

    store: str
    physical_offset: int
    file_start: int
    size: int
    data: str = Field(description="the bytes in base64")
