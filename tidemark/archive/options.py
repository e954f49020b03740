"""ArchiveOptions: which messages an archive contains and how its files are divided."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from tidemark.errors import ArgumentIllegalError

FILE_BYTES, ROW_GROUP_BYTES = 256 << 20, 32 << 20


class ArchiveSource(NamedTuple):
    """The store to read. state: folder of our own files about an attached broker's directory."""

    root: Path
    state: Path | None = None


class ArchiveOptions(BaseModel):
    """Options of one run.

    topics, topic_pattern  the named topics and those whose whole name matches; all topics if both are unset
    all_records            include the log file that is being written; default: sealed files only
    file_bytes             approximate message bytes per file, before compression
    row_group_bytes        approximate bytes per row group: a reader skips or reads it whole, a task holds it
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    store_name: str = "tidemark-0"
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    all_records: bool = False
    fail_on_corruption: bool = True
    fail_on_data_loss: bool = True
    file_bytes: int = Field(FILE_BYTES, ge=1)
    row_group_bytes: int = Field(ROW_GROUP_BYTES, ge=1)

    def matches(self, topic: str) -> bool:
        """Return True if the pattern matches *topic* or nothing is selected.

        Raises ArgumentIllegalError if it is invalid.
        """
        if self.topic_pattern is None:
            return not self.topics
        try:
            return re.fullmatch(self.topic_pattern, topic) is not None
        except re.error as error:
            raise ArgumentIllegalError(
                f"{self.topic_pattern!r} is not a regular expression: {error}", argument="topic_pattern"
            ) from error
