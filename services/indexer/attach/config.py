"""Settings of an attached store's follower, read at the start from the environment (TIDEMARK_) or the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings

from tidemark.format.index_file import DEFAULT_ENTRIES, DEFAULT_SLOTS
from tidemark.settings.door import service_config
from tidemark.settings.logs import LogLevel, LogLevelSetting
from tidemark.store.paths import StorePaths, require_outside


class AttachSettings(BaseSettings):
    """All settings. The environment variable of a field is TIDEMARK_ and the field's name in capitals."""

    model_config = service_config("python -m services.indexer attach")

    store_root: Path = Field(Path("data"), description="folder of the store")
    state_root: Path = Field(description="folder of Tidemark's files for an attached store")
    attach_poll_ms: int = Field(10, ge=1, le=10_000, description="longest pause between two polls of an idle log")
    attach_index: bool = Field(True, description="index the keys that the broker does not index")
    index_slots: int | None = Field(None, ge=1, description="slots of an index file in state_root; unset: 5000000")
    index_entries: int | None = Field(
        None, ge=1, description="entries of an index file in state_root; unset: 4 per slot"
    )
    log_level: LogLevelSetting = LogLevel.INFO

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_outside(self.state_root, self.store_root)
        return self

    @property
    def paths(self) -> StorePaths:
        """Paths of the store and of the state folder."""
        return StorePaths(self.store_root.absolute(), state=self.state_root.absolute())

    @property
    def index_size(self) -> tuple[int, int]:
        """(slots, entries) of an index file in the state folder."""
        slots = self.index_slots or DEFAULT_SLOTS
        return slots, self.index_entries or slots * (DEFAULT_ENTRIES // DEFAULT_SLOTS)
