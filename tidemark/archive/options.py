"""ArchiveOptions: what an archive is of, and how its files are cut."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from tidemark.errors import ArgumentIllegalError

FILE_BYTES, ROW_GROUP_BYTES = 256 << 20, 32 << 20


class Source(NamedTuple):
    """The store that is read. state: of an attached broker's directory, where our own files about it lie."""

    root: Path
    state: Path | None = None


class ArchiveOptions(BaseModel):
    """Of one run.

    topics, topic_pattern  which topics: those that are named, and those whose whole name matches; without both, all
    all_records            also those of the log file that is being written; else only what is sealed
    file_bytes             about so many bytes of messages a file holds, before compression
    row_group_bytes        about so many of a row group: what a reader skips or reads as a whole, and what a task holds
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
        """Whether the pattern, or the lack of any choice, takes *topic*; ArgumentIllegalError for no pattern."""
        if self.topic_pattern is None:
            return not self.topics
        try:
            return re.fullmatch(self.topic_pattern, topic) is not None
        except re.error as error:
            raise ArgumentIllegalError(
                f"{self.topic_pattern!r} is no regular expression: {error}", argument="topic_pattern"
            ) from error
